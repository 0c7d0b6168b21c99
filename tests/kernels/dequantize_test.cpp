#include "lab/kernels/dequantize.hpp"
#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

/// The polynomial of zlib and PNG.
std::uint32_t crc32(const std::vector<float>& v) {
  std::uint32_t crc = 0xffffffffu;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(v.data());
  for (std::size_t i = 0; i < v.size() * 4; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(std::byte(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<float> decode(DType dtype, const std::vector<std::byte>& bytes) {
  const std::int64_t n = std::int64_t(bytes.size()) / dtype_info(dtype).block_bytes *
                         dtype_info(dtype).block_size;
  Guarded<float> fast(n), plain(n);
  cpu::dequantize(fast.view({n}), dtype, bytes.data());
  cpu::reference::dequantize(plain.view({n}), dtype, bytes.data());
  REQUIRE(fast.intact());
  REQUIRE(plain.intact());
  REQUIRE(std::memcmp(fast.data(), plain.data(), std::size_t(n) * 4) == 0);
  return {plain.data(), plain.data() + n};
}

}  // namespace

TEST_CASE("blocks of 32 decode to the golden bits") {
  struct Golden {
    DType dtype;
    const char* hex;
    std::uint32_t crc;
  };
  const Golden golden[] = {
      {DType::q4_0, "e6afaf1fa716015e9887b6935fe4f02fb5f9", 0x3ac75bd6},
      {DType::q4_1, "3630e3bb60e068eafea26778496ca02b1fd15b07", 0x09b6c3f0},
      {DType::q5_0, "e6ab63a4c5db3f1f3f1c03bd200e7d27afb8d15e6af1", 0x4d9bdab4},
      {DType::q5_1, "132ce3bb9c5b3a24c0e0d1e4fc53dff193d851573eb2a60e", 0x3133b6c4},
      {DType::q8_0, "f61f85840b23699cff0c19498a3f789233f6e576e8747f2aec00c9ec2da7965bd081",
       0x35bad66c}};
  for (const Golden& g : golden) {
    INFO(name(g.dtype));
    CHECK(crc32(decode(g.dtype, from_hex(g.hex))) == g.crc);
  }
  CHECK(decode(DType::q4_0, from_hex(golden[0].hex))[0] == -0.8638916015625f);
  CHECK(decode(DType::q4_1, from_hex(golden[1].hex))[0] == -0.98583984375f);
}

TEST_CASE("patterned blocks decode to the golden bits") {
  struct Golden {
    DType dtype;
    int d_at, dmin_at;
    std::uint32_t crc;
    float first, last;
  };
  const Golden golden[] = {
      {DType::q2_k, 80, 82, 0x27aa8d5c, 0.84979248046875f, 1.74957275390625f},
      {DType::q3_k, 108, -1, 0x8bb54aa6, 5.6986083984375f, 0},
      {DType::q4_k, 0, 2, 0x780a97ab, 15.14630126953125f, 12.74688720703125f},
      {DType::q5_k, 0, 2, 0x79c0505e, 103.12481689453125f, 14.74639892578125f},
      {DType::q6_k, 208, -1, 0x532d3a85, -85.4791259765625f, 10.3974609375f},
      {DType::iq4_nl, 0, -1, 0xff1a0d19, -3.4991455078125f, NAN}};
  for (const Golden& g : golden) {
    INFO(name(g.dtype));
    std::vector<std::byte> b(std::size_t(dtype_info(g.dtype).block_bytes));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::byte((73 * i + 19) & 255);
    const auto put = [&](int at, std::uint16_t v) {
      std::memcpy(&b[std::size_t(at)], &v, 2);
    };
    put(g.d_at, 0x2e66);
    if (g.dmin_at >= 0) put(g.dmin_at, 0x2a66);
    const std::vector<float> y = decode(g.dtype, b);
    CHECK(crc32(y) == g.crc);
    CHECK(y.front() == g.first);
    if (!std::isnan(g.last)) CHECK(y.back() == g.last);
  }
}

TEST_CASE("float formats decode exactly, and long runs as single blocks do") {
  CHECK(decode(DType::f16, from_hex("003c00c00100007c"))[2] == 0x1p-24f);
  CHECK(std::isinf(decode(DType::f16, from_hex("007c"))[0]));
  CHECK(decode(DType::bf16, from_hex("803f"))[0] == 1);
  CHECK(decode(DType::f32, from_hex("0000803f"))[0] == 1);
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    Rng rng(4);
    const std::int64_t cols = 70 * 256;
    const auto bytes = random_weights(rng, dtype, 3, cols);
    const std::vector<float> all = decode(dtype, bytes);
    const std::int64_t size = dtype_info(dtype).block_size, at = 3 * cols / size - 1;
    const std::vector<std::byte> last(bytes.end() - dtype_info(dtype).block_bytes,
                                      bytes.end());
    const std::vector<float> one = decode(dtype, last);
    CHECK(std::memcmp(one.data(), &all[std::size_t(at * size)], std::size_t(size) * 4) ==
          0);
  }
}

TEST_CASE("dequantize takes whole blocks only") {
  float y[33];
  std::byte b[64] = {};
  const auto run = [&](auto&& f) {
    return message_of([&] { f(HostView<float, 1>{y, {33}}, DType::q8_0, b); });
  };
  const char* expected =
      "dequantize: out has 33 elements but Q8_0 stores blocks of 32; give whole blocks";
  CHECK(run(cpu::dequantize) == expected);
  CHECK(run(cpu::reference::dequantize) == expected);
  CHECK(message_of([&] { cpu::dequantize({y, {0}}, DType::q6_k, b); }) == "");
}
