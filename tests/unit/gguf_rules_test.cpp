// Every rule by which the GGUF parser refuses a file. Source: GGUF's documentation and
// ggml's reader; where they disagree, the stricter one.
#include <functional>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/model/gguf.hpp"
#include "support/catch.hpp"
#include "support/gguf_raw.hpp"

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

}  // namespace

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
