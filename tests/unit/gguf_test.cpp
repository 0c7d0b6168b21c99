// The GGUF parser and writer: round trips, the golden minimal file, getters, damaged files.
// The rules by which a file is refused: gguf_rules_test.cpp.
#include "lab/model/gguf.hpp"

#include <cstring>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/core/mapped_file.hpp"
#include "lab/model/gguf_writer.hpp"
#include "support/catch.hpp"
#include "support/sha256.hpp"
#include "support/temp_folder.hpp"

using namespace lab;
using namespace lab::test;

namespace {

constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();

/// The file whose hash the GGUF reference of this project records.
std::vector<std::byte> golden_minimal() {
  // A row of Q8_0 made from lcg(12345, 32), and a row of zeros.
  const std::vector<std::byte> row =
      from_hex("f61f85840b23699cff0c19498a3f789233f6e576e8747f2aec00c9ec2da7965bd081");
  std::vector<std::byte> x = row;
  x.resize(2 * row.size());
  const std::vector<float> y = {1, 2, 3};
  GgufWriter w;
  w.add("general.architecture", "llama");
  w.add("llama.block_count", std::uint32_t{1});
  w.add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  w.add_tensor("x.weight", DType::q8_0, {2, 32}, x);
  w.add_tensor("y.weight", DType::f32, {3}, std::as_bytes(std::span(y)));
  return w.bytes();
}

}  // namespace

TEST_CASE("the writer reproduces the golden minimal file") {
  const std::vector<std::byte> bytes = golden_minimal();
  CHECK(bytes.size() == 384);
  CHECK(sha256(bytes) ==
        "97ad39c724f7c015088d3a7ea0b0043f1fb9ba1ddaa8dddb7e7891e4b3ea10ff");
}

TEST_CASE("the golden minimal file reads back") {
  const std::vector<std::byte> bytes = golden_minimal();
  const GgufFile file = parse_gguf(bytes);
  CHECK(file.version == 3);
  CHECK(file.alignment == 32);
  CHECK(file.data_offset == 256);
  CHECK(file.metadata.string("general.architecture") == "llama");
  CHECK(file.metadata.integer("llama.block_count") == 1);
  CHECK(file.metadata.strings("tokenizer.ggml.tokens") ==
        std::vector<std::string>{"a", "b"});
  REQUIRE(file.tensors.size() == 2);
  const TensorInfo &x = file.tensors[0], &y = file.tensors[1];
  CHECK(x.name == "x.weight");
  CHECK(x.type_name == "Q8_0");
  CHECK(x.dtype == DType::q8_0);
  CHECK(x.shape == std::vector<std::int64_t>{2, 32});  // stored as 32, 2
  CHECK(x.data.size() == 68);
  CHECK(x.data.data() == bytes.data() + 256);
  CHECK(y.shape == std::vector<std::int64_t>{3});
  CHECK(y.data.data() == bytes.data() + 256 + 96);
  float last;
  std::memcpy(&last, y.data.data() + 8, sizeof last);
  CHECK(last == 3);
}

TEST_CASE("every metadata type survives writing and reading") {
  GgufWriter w;
  const std::vector<std::pair<std::string, GgufValue>> values = {
      {"a.u8", std::uint8_t{255}},
      {"a.i8", std::int8_t{-128}},
      {"a.u16", std::uint16_t{65535}},
      {"a.i16", std::int16_t{-32768}},
      {"a.u32", std::uint32_t{4294967295u}},
      {"a.i32", std::int32_t{-2147483647 - 1}},
      {"a.f32", 1.5f},
      {"a.bool", true},
      {"a.string", std::string("\0\xff text", 7)},
      {"a.empty", ""},
      {"a.u64", kMaxU64},
      {"a.i64", std::numeric_limits<std::int64_t>::min()},
      {"a.f64", 0.1},
      {"b.u8", std::vector<std::uint8_t>{1, 2, 3}},
      {"b.i8", std::vector<std::int8_t>{-1}},
      {"b.u16", std::vector<std::uint16_t>{1}},
      {"b.i16", std::vector<std::int16_t>{-1, 1}},
      {"b.u32", std::vector<std::uint32_t>{}},
      {"b.i32", std::vector<std::int32_t>{-5, 5}},
      {"b.f32", std::vector<float>{0.5f, -0.0f}},
      {"b.bool", std::vector<bool>{true, false, true}},
      {"b.string", std::vector<std::string>{"", "x", "yz"}},
      {"b.u64", std::vector<std::uint64_t>{kMaxU64}},
      {"b.i64", std::vector<std::int64_t>{-1}},
      {"b.f64", std::vector<double>{1e300}},
  };
  for (const auto& [key, value] : values) w.add(key, value);
  const std::vector<std::byte> bytes = w.bytes();
  const GgufFile file = parse_gguf(bytes);
  REQUIRE(file.metadata.entries().size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(values[i].first);
    CHECK(file.metadata.entries()[i].first == values[i].first);  // file order
    CHECK(file.metadata.entries()[i].second == values[i].second);
  }
  CHECK(gguf_type_text(*file.metadata.find("b.string")) == "string[3]");
  CHECK(gguf_type_text(*file.metadata.find("a.f64")) == "f64");
}

TEST_CASE("tensors of every supported type, of rank 0 to 4 and without elements, survive") {
  GgufWriter w;
  std::vector<std::vector<std::byte>> data;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::int64_t cols = 256;
    data.emplace_back(static_cast<std::size_t>(3 * row_bytes(dtype, cols)),
                      std::byte(i + 1));
    w.add_tensor("t" + std::to_string(i), dtype, {3, cols}, data.back());
  }
  const std::vector<float> values(120, 1.0f);
  const auto bytes_of = [&](std::size_t n) {
    return std::as_bytes(std::span(values).first(n));
  };
  w.add_tensor("scalar", DType::f32, {}, bytes_of(1));
  w.add_tensor("none", DType::f32, {4, 0}, {});
  w.add_tensor("rank4", DType::f32, {2, 3, 4, 5}, bytes_of(120));
  const std::vector<std::byte> bytes = w.bytes();
  CHECK(bytes.size() % 32 == 0);
  const GgufFile file = parse_gguf(bytes);
  REQUIRE(file.tensors.size() == std::size_t(kDTypeCount) + 3);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const TensorInfo& t = file.tensors[i];
    CAPTURE(t.name, t.type_name);
    CHECK(t.dtype == static_cast<DType>(i));
    CHECK(t.shape == std::vector<std::int64_t>{3, 256});
    CHECK(std::ranges::equal(t.data, data[i]));
  }
  const Checkpoint checkpoint(file.tensors);
  CHECK(checkpoint.find("scalar")->shape.empty());
  CHECK(checkpoint.find("scalar")->size() == 1);
  CHECK(checkpoint.find("none")->data.empty());
  CHECK(checkpoint.find("none")->size() == 0);
  CHECK(checkpoint.find("rank4")->shape == std::vector<std::int64_t>{2, 3, 4, 5});
}

TEST_CASE("another alignment is recorded and used") {
  for (const std::uint32_t alignment : {8u, 64u, 4096u}) {
    CAPTURE(alignment);
    GgufWriter w(alignment);
    const std::vector<float> v = {1, 2, 3};
    w.add_tensor("a", DType::f32, {3}, std::as_bytes(std::span(v)));
    w.add_tensor("b", DType::f32, {3}, std::as_bytes(std::span(v)));
    const std::vector<std::byte> bytes = w.bytes();
    CHECK(bytes.size() % alignment == 0);
    const GgufFile file = parse_gguf(bytes);
    CHECK(file.alignment == alignment);
    CHECK(file.data_offset % alignment == 0);
    CHECK((file.tensors[1].data.data() - bytes.data()) % alignment == 0);
    CHECK(std::memcmp(file.tensors[1].data.data(), v.data(), 12) == 0);
  }
  for (const std::uint32_t alignment : {0u, 4u, 48u, 2 * kGgufMaxAlignment})
    CHECK_THROWS_AS(GgufWriter(alignment), Error);
}

TEST_CASE("a written file is the bytes, and an unwritable path is an error") {
  const TempFolder folder;
  GgufWriter w;
  w.add("a", std::uint32_t{7});
  w.write(folder / "a.gguf");
  const MappedFile file(folder / "a.gguf");
  CHECK(std::ranges::equal(file.bytes(), w.bytes()));
  CHECK_THROWS_WITH(w.write(folder / "no/such/folder.gguf"),
                    ContainsSubstring("cannot write"));
}

TEST_CASE("the writer refuses what the reader would refuse") {
  GgufWriter w;
  const std::vector<std::byte> four(4);
  w.add("key", std::uint32_t{1});
  CHECK_THROWS_WITH(w.add("key", std::uint32_t{2}), ContainsSubstring("twice"));
  CHECK_THROWS_AS(w.add("array", GgufArray{std::monostate{}}), Error);
  w.add_tensor("t", DType::f32, {1}, four);
  CHECK_THROWS_WITH(w.add_tensor("t", DType::f32, {1}, four), ContainsSubstring("twice"));
  CHECK_THROWS_AS(w.add_tensor("", DType::f32, {1}, four), Error);
  CHECK_THROWS_AS(w.add_tensor(std::string(64, 'n'), DType::f32, {1}, four), Error);
  CHECK_THROWS_AS(w.add_tensor("u", DType::f32, {1, 1, 1, 1, 1}, four), Error);
  CHECK_THROWS_AS(w.add_tensor("u", DType::f32, {-1}, four), Error);
  CHECK_THROWS_AS(w.add_tensor("u", DType::q4_0, {31}, four), Error);
  CHECK_THROWS_WITH(w.add_tensor("u", DType::f32, {2}, four),
                    ContainsSubstring("needs 8 bytes, got 4"));
}

TEST_CASE("every DType has a GGUF number that leads back to it") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const GgmlType* type = find_ggml_type(ggml_type_id(static_cast<DType>(i)));
    REQUIRE(type != nullptr);
    CHECK(type->dtype == static_cast<DType>(i));
  }
  CHECK(ggml_type_id(DType::q6_k) == 14);
  CHECK(ggml_type_id(DType::iq4_nl) == 20);
  CHECK(ggml_type_id(DType::bf16) == 30);
}

// ----- getters

TEST_CASE("counts may have any integer type, and other types are named") {
  GgufMetadata m;
  m.add("u32", std::uint32_t{5});
  m.add("u64", std::uint64_t{5});
  m.add("i32", std::int32_t{5});
  m.add("huge", kMaxU64);
  m.add("f32", 5.0f);
  m.add("bool", true);
  m.add("numbers", std::vector<std::int32_t>{1, -2});
  m.add("texts", std::vector<std::string>{"a"});
  for (const char* key : {"u32", "u64", "i32"}) CHECK(m.integer(key) == 5);
  CHECK(m.integer("absent", 7) == 7);
  CHECK(m.f32("f32") == 5);
  CHECK(m.f32("absent", 2.5f) == 2.5f);
  CHECK(m.boolean("bool", false));
  CHECK(m.integers("numbers") == std::vector<std::int64_t>{1, -2});
  CHECK_THROWS_WITH(m.integer("absent"), ContainsSubstring("'absent' is missing"));
  CHECK_THROWS_WITH(m.integer("f32"),
                    ContainsSubstring("'f32': expected an integer, found f32"));
  CHECK_THROWS_WITH(m.integer("bool"), ContainsSubstring("found bool"));
  CHECK_THROWS_WITH(m.integer("huge"), ContainsSubstring("too large"));
  CHECK_THROWS_WITH(m.integer("numbers"), ContainsSubstring("found i32[2]"));
  CHECK_THROWS_WITH(m.f32("u32"), ContainsSubstring("expected f32, found u32"));
  CHECK_THROWS_WITH(m.string("u32"), ContainsSubstring("expected string, found u32"));
  CHECK_THROWS_WITH(m.strings("numbers"), ContainsSubstring("expected string[]"));
  CHECK_THROWS_WITH(m.integers("texts"),
                    ContainsSubstring("array of integers, found string"));
  CHECK_THROWS_WITH(m.boolean("u32", false), ContainsSubstring("expected bool"));
}

// ----- damage

TEST_CASE("a truncated file is an error, except where only the last padding is missing") {
  const std::vector<std::byte> bytes = golden_minimal();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly this length, so that a sanitizer sees a read behind the end.
    const std::vector<std::byte> part(bytes.begin(),
                                      bytes.begin() + std::ptrdiff_t(length));
    CAPTURE(length);
    if (length >= 256 + 96 + 12) {
      CHECK_NOTHROW(parse_gguf(part));
    } else {
      CHECK_THROWS_AS(parse_gguf(part), Error);
    }
  }
}

TEST_CASE("a flipped bit or byte is an error or parses, and never crashes") {
  const std::vector<std::byte> bytes = golden_minimal();
  int refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= std::byte(mask);
      try {
        static_cast<void>(parse_gguf(damaged));
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 300);  // most of the 253 bytes of header matter
}
