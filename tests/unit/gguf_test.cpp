// The GGUF parser and writer: round trips, the golden minimal file, and every rule by which
// a file is refused. Source of the rules: GGUF's documentation and ggml's reader.
#include "lab/model/gguf.hpp"

#include <cstring>
#include <functional>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/core/mapped_file.hpp"
#include "lab/model/gguf_writer.hpp"
#include "support/catch.hpp"
#include "support/gguf_raw.hpp"
#include "support/sha256.hpp"
#include "support/temp_folder.hpp"

using namespace lab;
using namespace lab::test;

namespace {

constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();

void check_rejected(const RawGguf& raw, const std::string& part_of_message) {
  CHECK_THROWS_WITH(parse_gguf(raw.bytes), ContainsSubstring(part_of_message));
}

/// A file with one metadata entry whose type and value `put` writes.
RawGguf with_value(const std::function<void(RawGguf&)>& put) {
  RawGguf raw;
  raw.header(3, 0, 1).string("key");
  put(raw);
  return raw;
}

/// A file with one tensor "t" of F32 and the given extents (contiguous first), and its
/// data.
RawGguf with_tensor(const std::vector<std::uint64_t>& extents, std::uint32_t type = 0,
                    std::uint64_t offset = 0, std::size_t data_bytes = 1024) {
  RawGguf raw;
  raw.header(3, 1, 0).tensor("t", extents, type, offset);
  raw.pad(32).bytes.resize(raw.bytes.size() + data_bytes);
  return raw;
}

RawGguf with_alignment(std::uint32_t type, std::uint64_t value, std::size_t value_bytes) {
  RawGguf raw;
  raw.header(3, 0, 1).string("general.alignment").u32(type);
  raw.raw(&value, value_bytes);
  return raw;
}

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

// ----- the header

TEST_CASE("GGUF: versions 2 and 3 are read") {
  for (const std::uint32_t version : {2u, 3u})
    CHECK(parse_gguf(RawGguf().header(version, 0, 0).bytes).version == version);
}

TEST_CASE("GGUF rejects another magic number and an empty file") {
  RawGguf raw;
  check_rejected(raw, "does not begin with 'GGUF'");
  raw.header(3, 0, 0).bytes[3] = std::byte{'f'};
  check_rejected(raw, "does not begin with 'GGUF'");
}

TEST_CASE("GGUF rejects versions 0, 1 and above 3") {
  check_rejected(RawGguf().header(0, 0, 0), "version 0 does not exist");
  check_rejected(RawGguf().header(1, 0, 0), "version 1 is no longer supported");
  check_rejected(RawGguf().header(4, 0, 0), "version 4 is newer");
}

TEST_CASE("GGUF rejects big-endian files by name") {
  check_rejected(RawGguf().header(0x03000000, 0, 0), "big-endian");
}

TEST_CASE("GGUF rejects counts beyond the file, before allocating") {
  for (const std::uint64_t count :
       {std::uint64_t{1}, std::uint64_t{1} << 40, std::uint64_t{1} << 63, kMaxU64}) {
    check_rejected(RawGguf().header(3, count, 0), "the number of tensors says");
    check_rejected(RawGguf().header(3, 0, count), "the number of metadata entries says");
  }
}

// ----- metadata

TEST_CASE("GGUF rejects strings longer than 1 GiB or than the file") {
  for (const std::uint64_t length : {(std::uint64_t{1} << 30) + 1, kMaxU64}) {
    check_rejected(with_value([&](RawGguf& r) { r.u32(8).u64(length); }), "more than the");
    RawGguf key;
    key.header(3, 0, 1).u64(length).u64(0);
    check_rejected(key, "a metadata key has");
  }
  check_rejected(with_value([](RawGguf& r) { r.u32(8).u64(5).raw("1234", 4); }),
                 "the file ends inside the value of 'key'");
}

TEST_CASE("GGUF rejects arrays longer than 2^30 or than the file") {
  for (const std::uint32_t type : {0u, 4u, 8u, 12u}) {
    check_rejected(with_value([&](RawGguf& r) { r.u32(9).u32(type).u64((1u << 30) + 1); }),
                   "more than the 1073741824 allowed");
    check_rejected(with_value([&](RawGguf& r) { r.u32(9).u32(type).u64(kMaxU64 / 2 + 1); }),
                   "more than the");
    check_rejected(with_value([&](RawGguf& r) { r.u32(9).u32(type).u64(9).u64(0); }),
                   "but only 8 bytes follow");
  }
}

TEST_CASE("GGUF rejects nested arrays") {
  check_rejected(with_value([](RawGguf& r) { r.u32(9).u32(9).u64(0); }), "array of arrays");
}

TEST_CASE("GGUF rejects unknown value and element types") {
  check_rejected(with_value([](RawGguf& r) { r.u32(13).u64(0); }), "unknown type 13");
  check_rejected(with_value([](RawGguf& r) { r.u32(0xffffffff).u64(0); }), "unknown type");
  check_rejected(with_value([](RawGguf& r) { r.u32(9).u32(13).u64(0); }),
                 "array of unknown type 13");
}

TEST_CASE("GGUF rejects empty keys") {
  RawGguf raw;
  raw.header(3, 0, 1).string("").u32(4).u32(1);
  check_rejected(raw, "empty key");
}

TEST_CASE("GGUF rejects keys that are too long or not ASCII, and prints them harmlessly") {
  RawGguf longer;
  longer.header(3, 0, 1).string(std::string(65536, 'k')).u32(4).u32(1);
  check_rejected(longer, "65536 bytes");
  RawGguf longest;
  longest.header(3, 0, 1).string(std::string(65535, 'k')).u32(4).u32(1);
  CHECK(parse_gguf(longest.bytes).metadata.entries().size() == 1);
  RawGguf escape;
  escape.header(3, 0, 1).string("\x1b[2J").u32(4).u32(1);
  check_rejected(escape, "'\\x1b[2J'");
}

TEST_CASE("GGUF rejects duplicate keys") {
  RawGguf raw;
  raw.header(3, 0, 2).string("key").u32(4).u32(1).string("key").u32(4).u32(1);
  check_rejected(raw, "'key' occurs twice");
}

TEST_CASE("GGUF rejects bools other than 0 and 1") {
  check_rejected(with_value([](RawGguf& r) { r.u32(7).u8(2); }), "bool with the value 2");
  check_rejected(with_value([](RawGguf& r) { r.u32(9).u32(7).u64(2).u8(1).u8(255); }),
                 "bool with the value 255");
}

TEST_CASE("GGUF rejects an alignment that is not a sensible power of two in a u32") {
  for (const std::uint64_t value : {0u, 1u, 4u, 12u, 33u, 1u << 21, 1u << 30, 1u << 31})
    check_rejected(with_alignment(4, value, 4),
                   "expected a power of two from 8 to 1048576");
  check_rejected(with_alignment(10, 32, 8), "has type u64, expected u32");
  check_rejected(with_alignment(5, 32, 4), "has type i32, expected u32");
  CHECK(parse_gguf(with_alignment(4, 1u << 20, 4).bytes).alignment == 1u << 20);
}

// ----- tensors

TEST_CASE("GGUF rejects tensor names of 64 bytes and more") {
  RawGguf raw;
  raw.header(3, 1, 0).tensor(std::string(64, 'n'), {}, 0, 0).pad(32).u32(0);
  check_rejected(raw, "64 bytes, at most 63");
  RawGguf longest;
  longest.header(3, 1, 0).tensor(std::string(63, 'n'), {}, 0, 0).pad(32).u32(0);
  CHECK(parse_gguf(longest.bytes).tensors.size() == 1);
}

TEST_CASE("GGUF rejects duplicate tensor names") {
  RawGguf raw;
  raw.header(3, 2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).pad(32);
  raw.bytes.resize(raw.bytes.size() + 64);
  check_rejected(raw, "tensor 't' occurs twice");
}

TEST_CASE("GGUF rejects more than 4 dimensions") {
  check_rejected(with_tensor({1, 1, 1, 1, 1}), "5 dimensions");
  RawGguf raw;
  raw.header(3, 1, 0).string("t").u32(0xffffffff).u64(1).u64(1).u64(1);
  check_rejected(raw, "4294967295 dimensions");
}

TEST_CASE("GGUF rejects negative extents") {
  check_rejected(with_tensor({kMaxU64}), "negative extent in dimension 0");
  check_rejected(with_tensor({1, std::uint64_t{1} << 63}),
                 "negative extent in dimension 1");
}

TEST_CASE("GGUF reads tensors without elements, in any dimension") {
  for (const auto& extents : std::vector<std::vector<std::uint64_t>>{
           {0}, {0, 5}, {5, 0}, {0, std::uint64_t{1} << 62, 4}}) {
    const RawGguf raw = with_tensor(extents);
    const GgufFile file = parse_gguf(raw.bytes);
    CHECK(file.tensors[0].data.empty());
    CHECK(file.tensors[0].shape.size() == extents.size());
  }
}

TEST_CASE("GGUF rejects element counts that do not fit 63 bits") {
  const std::uint64_t big = std::uint64_t{1} << 32;
  check_rejected(with_tensor({big, big}), "more elements than");
  check_rejected(with_tensor({big, big / 2}), "more elements than");
  check_rejected(with_tensor({4, big, big, 0}), "more elements than");
  check_rejected(with_tensor({std::uint64_t(std::numeric_limits<std::int64_t>::max())}),
                 "more elements than");
}

TEST_CASE("GGUF rejects byte counts that do not fit 64 bits") {
  // Fewer than 2^63 elements, but more than 2^64 bytes.
  check_rejected(with_tensor({std::uint64_t{1} << 62, 1}), "more bytes than 64 bits");
}

TEST_CASE("GGUF rejects unknown and removed tensor types") {
  for (const std::uint32_t type : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 0xffffffffu})
    check_rejected(with_tensor({256}, type), "unknown or removed type");
}

TEST_CASE("GGUF rejects rows that are not whole blocks") {
  check_rejected(with_tensor({31, 32}, 2), "not whole Q4_0 blocks of 32");
  check_rejected(with_tensor({576, 1}, 12), "not whole Q4_K blocks of 256");
  check_rejected(with_tensor({}, 2), "not whole Q4_0 blocks");
}

TEST_CASE("GGUF rejects offsets other than the padded sum of the sizes before") {
  check_rejected(with_tensor({8}, 0, 32), "at offset 32 of the data section, expected 0");
  const auto two = [](std::uint64_t second) {
    RawGguf raw;
    raw.header(3, 2, 0).tensor("a", {9}, 0, 0).tensor("b", {1}, 0, second).pad(32);
    raw.bytes.resize(raw.bytes.size() + 1024);
    return raw;
  };
  CHECK(parse_gguf(two(64).bytes).tensors.size() == 2);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{32}, std::uint64_t{36},
                                     std::uint64_t{96}, kMaxU64 - 31})
    check_rejected(two(offset), "tensor 'b' is at offset");
}

TEST_CASE("GGUF rejects sizes whose padded sum overflows") {
  const std::uint64_t n = (std::uint64_t{1} << 62) - 1;  // 2^64 - 4 bytes each
  RawGguf one = with_tensor({n});
  check_rejected(one, "the tensors up to 't' have more bytes");  // the padding overflows
  const std::uint64_t half = std::uint64_t{1} << 61;             // 2^63 bytes
  RawGguf two;
  two.header(3, 2, 0)
      .tensor("a", {half}, 0, 0)
      .tensor("b", {half}, 0, std::uint64_t{1} << 63);
  check_rejected(two, "the tensors up to 'b' have more bytes");
}

TEST_CASE("GGUF rejects data that the file does not hold") {
  check_rejected(with_tensor({8}, 0, 0, 31), "need 32 bytes");
  CHECK(parse_gguf(with_tensor({8}, 0, 0, 32).bytes).tensors[0].data.size() == 32);
  check_rejected(with_tensor({std::uint64_t{1} << 40}), "need 4398046511104 bytes");
}

TEST_CASE("GGUF reads a file without tensors and without the padding of an empty section") {
  const RawGguf raw = with_value([](RawGguf& r) { r.u32(4).u32(1); });
  CHECK(raw.bytes.size() % 32 != 0);
  CHECK(parse_gguf(raw.bytes).tensors.empty());
}

TEST_CASE("a type that cannot be computed with is listed, sized, and refused by bind") {
  const RawGguf raw = with_tensor({256, 2}, 16);
  const Checkpoint checkpoint(parse_gguf(raw.bytes).tensors);
  const TensorInfo* t = checkpoint.find("t");
  REQUIRE(t != nullptr);
  CHECK(t->type_name == "IQ2_XXS");
  CHECK(!t->dtype.has_value());
  CHECK(t->data.size() == 2 * 66);
  const std::vector<std::int64_t> shape = {2, 256};
  CHECK_THROWS_WITH(checkpoint.bind("t", {}, shape),
                    ContainsSubstring("tensor 't' has type IQ2_XXS"));
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
