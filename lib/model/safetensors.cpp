#include "lab/model/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/model/json_file.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

using detail::quote;
using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;

struct StoredType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype;
};

constexpr StoredType kTypes[] = {
    {"F32", 32, DType::f32}, {"F16", 16, DType::f16}, {"BF16", 16, DType::bf16},
    {"BOOL", 8, {}},         {"U8", 8, {}},           {"I8", 8, {}},
    {"F8_E5M2", 8, {}},      {"F8_E4M3", 8, {}},      {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},  {"F8_E5M2FNUZ", 8, {}},  {"I16", 16, {}},
    {"U16", 16, {}},         {"I32", 32, {}},         {"U32", 32, {}},
    {"C64", 64, {}},         {"F64", 64, {}},         {"I64", 64, {}},
    {"U64", 64, {}},         {"F4", 4, {}},           {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}}};

struct Entry {
  TensorInfo info;
  std::uint64_t begin, end;
};

std::vector<std::uint64_t> unsigned_numbers(const json& entry, const char* key,
                                            const std::string& tensor) {
  const auto it = entry.find(key);
  LAB_CHECK(it != entry.end() && it->is_array(), "safetensors: tensor {} has no array '{}'",
            quote(tensor), key);
  std::vector<std::uint64_t> numbers;
  for (const json& v : *it) {
    LAB_CHECK(
        v.is_number_unsigned(),
        "safetensors: tensor {} has {} in '{}', expected a whole number from 0 to 2^64-1",
        quote(tensor), quote(v.dump(-1, ' ', true)), key);
    numbers.push_back(v.get<std::uint64_t>());
  }
  return numbers;
}

const StoredType& find_type(const json& entry, const std::string& tensor) {
  const auto it = entry.find("dtype");
  LAB_CHECK(it != entry.end() && it->is_string(),
            "safetensors: tensor {} has no string 'dtype'", quote(tensor));
  const auto& name = it->get_ref<const std::string&>();
  const auto* type = std::ranges::find(kTypes, name, &StoredType::name);
  LAB_CHECK(type != std::end(kTypes), "safetensors: tensor {} has the unknown type {}",
            quote(tensor), quote(name));
  return *type;
}

std::uint64_t tensor_bytes(const std::vector<std::uint64_t>& shape, const StoredType& type,
                           const std::string& tensor) {
  const auto size = detail::checked_size(shape);
  std::optional<std::uint64_t> bits;
  if (size) bits = detail::checked_multiply(static_cast<std::uint64_t>(*size), type.bits);
  LAB_CHECK(bits.has_value(),
            "safetensors: tensor {} has more elements than can be counted", quote(tensor));
  LAB_CHECK(*bits % 8 == 0, "safetensors: tensor {} does not fill whole bytes ({} bits)",
            quote(tensor), *bits);
  return *bits / 8;
}

Entry read_entry(const std::string& name, const json& value) {
  LAB_CHECK(value.is_object(), "safetensors: the entry of tensor {} is not an object",
            quote(name));
  const StoredType& type = find_type(value, name);
  const auto shape = unsigned_numbers(value, "shape", name);
  const auto offsets = unsigned_numbers(value, "data_offsets", name);
  LAB_CHECK(offsets.size() == 2, "safetensors: tensor {} has {} data_offsets, expected 2",
            quote(name), offsets.size());
  LAB_CHECK(offsets[0] <= offsets[1],
            "safetensors: tensor {} ends at {}, before it begins at {}", quote(name),
            offsets[1], offsets[0]);
  const std::uint64_t bytes = tensor_bytes(shape, type, name);
  Entry entry{{name, std::string(type.name), type.dtype, {shape.begin(), shape.end()}, {}},
              offsets[0],
              offsets[1]};
  LAB_CHECK(
      bytes == offsets[1] - offsets[0],
      "safetensors: tensor {} of shape {} and type {} needs {} bytes, its data_offsets "
      "give {}",
      quote(name), shape_text(entry.info.shape), type.name, bytes, offsets[1] - offsets[0]);
  return entry;
}

void check_metadata(const json& metadata) {
  LAB_CHECK(metadata.is_object(), "safetensors: __metadata__ is not an object");
  for (const auto& [key, value] : metadata.items())
    LAB_CHECK(value.is_string(), "safetensors: __metadata__ key {} is not a string",
              quote(key));
}

std::string_view header_text(std::span<const std::byte> bytes) {
  LAB_CHECK(bytes.size() >= kLengthBytes,
            "safetensors: the file has {} bytes, fewer than the {} of the header's length",
            bytes.size(), kLengthBytes);
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  LAB_CHECK(length <= kSafetensorsMaxHeader,
            "safetensors: the header has {} bytes, at most {} are allowed", length,
            kSafetensorsMaxHeader);
  LAB_CHECK(
      length <= bytes.size() - kLengthBytes,
      "safetensors: the header has {} bytes, but only {} follow; the file is truncated, "
      "fetch it again",
      length, bytes.size() - kLengthBytes);
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
          static_cast<std::size_t>(length)};
}

/// Checks that the tensors cover `data` exactly once, and points them to it.
void place(std::vector<Entry>& entries, std::span<const std::byte> data) {
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  std::uint64_t end = 0;
  for (Entry& e : entries) {
    LAB_CHECK(
        e.begin == end,
        "safetensors: tensor {} begins at {}, expected {}: tensors must cover the data "
        "without gaps or overlap",
        quote(e.info.name), e.begin, end);
    LAB_CHECK(
        e.end <= data.size(),
        "safetensors: tensor {} ends at {}, but there are {} bytes of data; the file is "
        "truncated, fetch it again",
        quote(e.info.name), e.end, data.size());
    end = e.end;
    e.info.data = data.subspan(static_cast<std::size_t>(e.begin),
                               static_cast<std::size_t>(e.end - e.begin));
  }
  LAB_CHECK(end == data.size(),
            "safetensors: {} bytes follow the last tensor, expected none",
            data.size() - end);
}

}  // namespace

bool is_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() <= kLengthBytes || bytes[kLengthBytes] != std::byte{'{'}) return false;
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length <= kSafetensorsMaxHeader;
}

std::vector<TensorInfo> parse_safetensors(std::span<const std::byte> bytes) {
  const std::string_view text = header_text(bytes);
  LAB_CHECK(text.starts_with('{'), "safetensors: the header does not begin with '{{'");
  // {name: {"shape": [...]}} is three levels.
  const json header = detail::parse_json_object(text, "safetensors: the header", 3);
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__")
      check_metadata(value);
    else
      entries.push_back(read_entry(name, value));
  }
  place(entries, bytes.subspan(kLengthBytes + text.size()));
  std::vector<TensorInfo> tensors;
  tensors.reserve(entries.size());
  for (Entry& e : entries) tensors.push_back(std::move(e.info));
  return tensors;
}

std::map<std::string, std::string> parse_safetensors_index(std::string_view text) {
  const json index = detail::parse_json_object(text, "the safetensors index");
  const auto it = index.find("weight_map");
  LAB_CHECK(it != index.end() && it->is_object(),
            "the safetensors index has no object 'weight_map'");
  std::map<std::string, std::string> map;
  for (const auto& [tensor, value] : it->items()) {
    LAB_CHECK(value.is_string(), "the safetensors index gives no file name for tensor {}",
              quote(tensor));
    const auto& file = value.get_ref<const std::string&>();
    // A name with folders could point anywhere on the reader's disk.
    LAB_CHECK(
        !file.empty() && file.find_first_of("/\\") == file.npos && file != "..",
        "the safetensors index names the file {} for tensor {}, expected a plain name",
        quote(file), quote(tensor));
    map.emplace(tensor, file);
  }
  return map;
}

}  // namespace lab
