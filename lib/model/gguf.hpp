/// @file
/// GGUF: the model file format of ggml and llama.cpp. Reader side.
///
/// All integers are little-endian. A string is a u64 byte length and the bytes, without
/// NUL.
///  1. "GGUF", u32 version (2 or 3), u64 number of tensors, u64 number of metadata entries
///  2. metadata entries: string key, u32 value type, value. An array is u32 element type,
///     u64 count, elements. No padding between entries.
///  3. tensor entries: string name, u32 number of dimensions (at most 4), u64 extents with
///  the
///     contiguous one first, u32 type, u64 offset from the start of the data section
///  4. zeros up to a multiple of `general.alignment` (32 unless given) from the file's
///  start
///  5. the data section: the tensors in the order of their entries, each padded to the
///     alignment, without gaps
///
/// Source: github.com/ggml-org/ggml, docs/gguf.md and the checks of src/gguf.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lab/model/checkpoint.hpp"

namespace lab {

inline constexpr std::uint32_t kGgufDefaultAlignment = 32;
inline constexpr std::uint32_t kGgufMaxAlignment = 1u << 20;
inline constexpr std::size_t kGgufMaxTensorName = 63;
inline constexpr std::size_t kGgufMaxDims = 4;

/// An array of metadata. The alternative's index is the format's number of the element
/// type; std::monostate stands for the array of arrays, which is refused.
using GgufArray = std::variant<
    std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
    std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
    std::vector<float>, std::vector<bool>, std::vector<std::string>, std::monostate,
    std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;

/// A metadata value. The alternative's index is the format's number of the type.
using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                               std::uint32_t, std::int32_t, float, bool, std::string,
                               GgufArray, std::uint64_t, std::int64_t, double>;
inline constexpr std::uint32_t kGgufArrayType = 9, kGgufTypeCount = 13;

/// "u32", "string", "string[49152]"
std::string gguf_type_text(const GgufValue& value);

/// Key-value pairs in file order. Getters throw Error if a value has another type; those
/// without a default throw if the key is absent.
class GgufMetadata {
 public:
  using Entry = std::pair<std::string, GgufValue>;

  /// @throws Error if the key is there already
  void add(std::string key, GgufValue value);

  const std::vector<Entry>& entries() const { return entries_; }
  /// @return the value, or null
  const GgufValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// Any integer type is accepted: writers disagree between u32, i32 and u64.
  std::int64_t integer(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t absent) const;
  float f32(std::string_view key) const;
  float f32(std::string_view key, float absent) const;
  bool boolean(std::string_view key, bool absent) const;
  const std::string& string(std::string_view key) const;
  std::string string(std::string_view key, std::string_view absent) const;
  const std::vector<std::string>& strings(std::string_view key) const;
  /// An array of any integer type.
  std::vector<std::int64_t> integers(std::string_view key) const;

 private:
  const GgufValue& required(std::string_view key) const;

  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> by_key_;
};

/// A parsed file. `tensors` point into the bytes that were parsed.
struct GgufFile {
  std::uint32_t version = 3;
  std::uint32_t alignment = kGgufDefaultAlignment;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;  ///< in file order, extents reversed: outermost first
  std::size_t data_offset = 0;  ///< where the data section starts, from the file's start
};

/// @return whether the bytes begin with GGUF's magic number
bool is_gguf(std::span<const std::byte> bytes);

/// Reads a whole file. Pure: never writes, never touches tensor data, and allocates for a
/// count or a length only after finding that so much can be left in `bytes`.
/// @throws Error if the bytes are not a valid GGUF file of version 2 or 3
GgufFile parse_gguf(std::span<const std::byte> bytes);

/// A storage type of the format.
struct GgmlType {
  std::uint32_t id;
  std::string_view name;
  std::int64_t block_size;  ///< elements in a block
  std::int64_t block_bytes;
  std::optional<DType> dtype;  ///< empty: can be listed but not computed with
};

/// @return the type with the format's number `id`, or null (unknown or removed)
const GgmlType* find_ggml_type(std::uint32_t id);
/// @return the format's number of `dtype`
std::uint32_t ggml_type_id(DType dtype);

}  // namespace lab
