// The safetensors parser: round trips, the golden file, and every rule by which a file is
// refused. Source of the rules: the reference reader of the safetensors project.
#include "lab/model/safetensors.hpp"

#include <cstring>

#include "lab/core/error.hpp"
#include "support/catch.hpp"
#include "support/safetensors_writer.hpp"
#include "support/sha256.hpp"

using namespace lab;
using namespace lab::test;

namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> golden() {
  return safetensors_bytes(std::vector<StoredTensor>{
      {"w", DType::f32, {2, 2}, bytes_of<float>({1, 2, 3, 4})},
      {"h", DType::bf16, {3}, bytes_of<std::uint16_t>({0x3f80, 0xc000, 0x3dcd})}});
}

/// Parses a header text with `n` bytes of data.
std::vector<TensorInfo> parse(const std::string& header, std::size_t n) {
  static std::vector<std::byte> file;  // the tensors point into it
  file = safetensors_raw(header, std::vector<std::byte>(n));
  return parse_safetensors(file);
}

void check_rejected(const std::string& header, std::size_t n, const std::string& message) {
  CAPTURE(header);
  CHECK_THROWS_WITH(parse(header, n), ContainsSubstring(message));
}

std::string entry(const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

std::string one(const std::string& dtype, const std::string& shape,
                const std::string& offsets) {
  return R"({"t":)" + entry(dtype, shape, offsets) + "}";
}

}  // namespace

TEST_CASE("the test writer reproduces the golden file, and it reads back") {
  const std::vector<std::byte> bytes = golden();
  CHECK(bytes.size() == 150);
  CHECK(sha256(bytes) ==
        "2bcc09b590d8bafbc67ea1939405efb8efc9f021d681cb6b9da773037dccd3f8");
  CHECK(is_safetensors(bytes));
  const std::vector<TensorInfo> tensors = parse_safetensors(bytes);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "w");
  CHECK(tensors[0].dtype == DType::f32);
  CHECK(tensors[0].type_name == "F32");
  CHECK(tensors[0].shape == std::vector<std::int64_t>{2, 2});
  CHECK(tensors[0].data.data() == bytes.data() + 128);
  CHECK(tensors[0].data.size() == 16);
  CHECK(tensors[1].dtype == DType::bf16);
  CHECK(tensors[1].data.data() == bytes.data() + 144);
}

TEST_CASE("an empty model, scalars, and tensors without elements are read") {
  CHECK(parse("{}", 0).empty());
  CHECK(parse(R"({"__metadata__":{"format":"pt"}}   )", 0).empty());
  const auto scalar = parse(one("F32", "[]", "[0,4]"), 4);
  CHECK(scalar[0].shape.empty());
  const auto none = parse(one("F32", "[2,0,5]", "[0,0]"), 0);
  CHECK(none[0].shape == std::vector<std::int64_t>{2, 0, 5});
  CHECK(none[0].data.empty());
}

TEST_CASE("tensors are returned in the order of their data, whatever the header's order") {
  const auto tensors = parse(R"({"a":)" + entry("U8", "[2]", "[3,5]") + R"(,"b":)" +
                                 entry("I8", "[3]", "[0,3]") + "}",
                             5);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "b");
  CHECK(tensors[1].name == "a");
}

TEST_CASE("types that cannot be computed with are listed, sized, and refused by bind") {
  const std::vector<std::pair<std::string, int>> types = {
      {"BOOL", 8},    {"U8", 8},   {"I8", 8},      {"F8_E5M2", 8},     {"F8_E4M3", 8},
      {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16},    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
      {"I32", 32},    {"U32", 32}, {"C64", 64},    {"F64", 64},        {"I64", 64},
      {"U64", 64},    {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& [name, bits] : types) {
    CAPTURE(name);
    const std::size_t bytes = static_cast<std::size_t>(bits);  // 8 elements
    const Checkpoint c(parse(one(name, "[8]", fmt::format("[0,{}]", bytes)), bytes));
    CHECK(c.tensors()[0].type_name == name);
    CHECK(!c.tensors()[0].dtype.has_value());
    const std::vector<std::int64_t> shape = {8};
    CHECK_THROWS_WITH(c.bind("t", {}, shape), ContainsSubstring("type " + name));
  }
}

// ----- the length of the header

TEST_CASE("safetensors rejects files of fewer than 8 bytes") {
  for (std::size_t n = 0; n < 8; ++n)
    CHECK_THROWS_WITH(parse_safetensors(std::vector<std::byte>(n)),
                      ContainsSubstring("fewer than the 8"));
}

TEST_CASE("safetensors rejects headers above 100 MB") {
  std::vector<std::byte> bytes = from_hex("0000000000ffffff7b7d");
  CHECK_THROWS_WITH(parse_safetensors(bytes), ContainsSubstring("at most 100000000"));
  CHECK(!is_safetensors(bytes));
  bytes = from_hex("01e1f505000000007b");  // 100,000,001
  CHECK_THROWS_WITH(parse_safetensors(bytes), ContainsSubstring("at most 100000000"));
  bytes = from_hex("00e1f505000000007b");  // 100,000,000: only too long for this file
  CHECK_THROWS_WITH(parse_safetensors(bytes), ContainsSubstring("truncated"));
}

TEST_CASE("safetensors rejects headers longer than the file") {
  CHECK_THROWS_WITH(parse_safetensors(from_hex("3c00000000000000")),
                    ContainsSubstring("60 bytes, but only 0 follow"));
}

// ----- the header's text

TEST_CASE("safetensors rejects headers that are not UTF-8") {
  CHECK_THROWS_AS(parse_safetensors(from_hex("0100000000000000ff")), Error);
  check_rejected("{\"\xff\":1}", 0, "not valid JSON");
}

TEST_CASE("safetensors rejects headers that are not a JSON object") {
  CHECK_THROWS_WITH(parse_safetensors(from_hex("01000000000000007b")),
                    ContainsSubstring("not valid JSON"));
  check_rejected("", 0, "does not begin with '{'");
  check_rejected("[]", 0, "does not begin with '{'");
  check_rejected(" {}", 0, "does not begin with '{'");
  check_rejected("\xef\xbb\xbf{}", 0, "does not begin with '{'");
  check_rejected("{}x", 0, "not valid JSON");
  check_rejected("{\"t\":1e999}", 0, "not valid JSON");
}

TEST_CASE("safetensors rejects padding with NUL, accepts padding with spaces") {
  check_rejected(std::string("{}\0\0\0\0\0\0", 8), 0, "NUL byte at 2");
  CHECK(parse("{}      ", 0).empty());
}

TEST_CASE("safetensors rejects duplicate keys") {
  check_rejected(R"({"t":)" + entry("U8", "[1]", "[0,1]") + R"(,"t":)" +
                     entry("U8", "[1]", "[1,2]") + "}",
                 2, "the key 't' twice");
  check_rejected(R"({"t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
                 "the key 'dtype' twice");
}

TEST_CASE("safetensors rejects deep nesting before it costs memory") {
  const std::string deep = R"({"t":)" + std::string(100000, '[');
  check_rejected(deep, 0, "nested deeper than 3");
}

TEST_CASE("safetensors rejects metadata other than texts") {
  check_rejected(R"({"__metadata__":[]})", 0, "__metadata__ is not an object");
  check_rejected(R"({"__metadata__":{"a":1}})", 0, "__metadata__ key 'a' is not a string");
}

// ----- entries

TEST_CASE("safetensors rejects incomplete entries") {
  check_rejected(R"({"t":1})", 0, "entry of tensor 't' is not an object");
  check_rejected(R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1, "no string 'dtype'");
  check_rejected(R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1, "no array 'shape'");
  check_rejected(R"({"t":{"dtype":"U8","shape":[1]}})", 1, "no array 'data_offsets'");
  check_rejected(one("U8", "[1]", "[0]"), 1, "1 data_offsets, expected 2");
  check_rejected(one("U8", "[1]", "[0,1,1]"), 1, "3 data_offsets, expected 2");
}

TEST_CASE("safetensors rejects unknown types") {
  check_rejected(one("Q4_0", "[1]", "[0,1]"), 1, "unknown type 'Q4_0'");
}

TEST_CASE("safetensors rejects extents and offsets that are not whole numbers") {
  for (const char* shape :
       {"[-1]", "[1.0]", "[\"1\"]", "[null]", "[1e3]", "[99999999999999999999]"})
    check_rejected(one("U8", shape, "[0,1]"), 1, "expected a whole number");
  check_rejected(one("U8", "[1]", "[-1,0]"), 1, "expected a whole number");
}

TEST_CASE("safetensors rejects sizes that overflow") {
  for (const char* shape : {"[2,18446744073709551614]", "[2,9223372036854775807]",
                            "[4294967296,4294967296]", "[18446744073709551615,0]"})
    check_rejected(one("F32", shape, "[0,16]"), 16, "more elements than can be counted");
  // The elements can be counted, their bits cannot.
  check_rejected(one("F32", "[1152921504606846976]", "[0,16]"), 16, "more elements than");
}

TEST_CASE("safetensors rejects types below a byte that do not fill bytes") {
  check_rejected(one("F4", "[3]", "[0,2]"), 2, "does not fill whole bytes");
  check_rejected(one("F6_E2M3", "[2]", "[0,2]"), 2, "does not fill whole bytes");
}

TEST_CASE("safetensors rejects tensors that end before they begin") {
  check_rejected(one("U8", "[1]", "[1,0]"), 1, "ends at 0, before it begins at 1");
}

TEST_CASE("safetensors rejects offsets that do not fit the shape") {
  check_rejected(one("F32", "[2]", "[0,4]"), 4, "needs 8 bytes, its data_offsets give 4");
}

TEST_CASE("safetensors rejects gaps, overlap and aliasing") {
  check_rejected(one("U8", "[1]", "[1,2]"), 2, "begins at 1, expected 0");
  const auto two = [](const std::string& second) {
    return R"({"a":)" + entry("U8", "[2]", "[0,2]") + R"(,"b":)" +
           entry("U8", "[2]", second) + "}";
  };
  check_rejected(two("[3,5]"), 5, "begins at 3, expected 2");
  check_rejected(two("[1,3]"), 3, "begins at 1, expected 2");
  check_rejected(two("[0,2]"), 2, "begins at 0, expected 2");
  CHECK(parse(two("[2,4]"), 4).size() == 2);
  std::string shared = "{";
  for (int i = 0; i < 10; ++i)
    shared +=
        (i ? ",\"t" : "\"t") + std::to_string(i) + "\":" + entry("F32", "[2,2]", "[0,16]");
  check_rejected(shared + "}", 16, "expected 16");
}

TEST_CASE("safetensors rejects missing and trailing data") {
  check_rejected(one("F32", "[2,2]", "[0,16]"), 14, "there are 14 bytes of data");
  check_rejected(one("F32", "[2,2]", "[0,16]"), 17, "1 bytes follow the last tensor");
  check_rejected("{}", 3, "3 bytes follow");
  check_rejected(one("U8", "[9223372036854775806]", "[0,9223372036854775806]"), 4,
                 "more elements than can be counted");
  check_rejected(one("U8", "[1152921504606846976]", "[0,1152921504606846976]"), 4,
                 "there are 4 bytes of data");
}

TEST_CASE("names are printed harmlessly") {
  check_rejected("{\"\\u001b[2J\":1}", 0, "'\\x1b[2J'");
}

// ----- the index

TEST_CASE("the index of a sharded model maps tensors to files") {
  const auto map = parse_safetensors_index(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  CHECK(map.size() == 2);
  CHECK(map.at("b") == "m-2.safetensors");
}

TEST_CASE("the index is refused without a proper weight_map") {
  const auto parse_index = [](const char* text) { return parse_safetensors_index(text); };
  CHECK_THROWS_WITH(parse_index("{"), ContainsSubstring("not valid JSON"));
  CHECK_THROWS_WITH(parse_index("[]"), ContainsSubstring("not an object"));
  CHECK_THROWS_WITH(parse_index("{}"), ContainsSubstring("no object 'weight_map'"));
  CHECK_THROWS_WITH(parse_index(R"({"weight_map":[]})"), ContainsSubstring("no object"));
  CHECK_THROWS_WITH(parse_index(R"({"weight_map":{"a":1}})"),
                    ContainsSubstring("no file name"));
  for (const char* file : {"../x", "/etc/passwd", "a\\\\b", "", ".."})
    CHECK_THROWS_WITH(
        parse_index((std::string(R"({"weight_map":{"a":")") + file + "\"}}").c_str()),
        ContainsSubstring("expected a plain name"));
}

// ----- damage

TEST_CASE("a truncated safetensors file is an error at every length") {
  const std::vector<std::byte> bytes = golden();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    const std::vector<std::byte> part(bytes.begin(),
                                      bytes.begin() + std::ptrdiff_t(length));
    CHECK_THROWS_AS(parse_safetensors(part), Error);
  }
}

TEST_CASE("a flipped bit or byte of safetensors is an error or parses, and never crashes") {
  const std::vector<std::byte> bytes = golden();
  int refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= std::byte(mask);
      try {
        static_cast<void>(parse_safetensors(damaged));
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 250);
}
