#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "lab/core/error.hpp"
#include "lab/model/gguf.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

using detail::quote;

constexpr std::size_t kMaxKey = 65535;
constexpr std::uint64_t kMaxString = 1ull << 30, kMaxArray = 1ull << 30;
constexpr std::array<char, 4> kMagic = {'G', 'G', 'U', 'F'};
// The fewest bytes an entry can have: an empty string's length, a type, a one-byte value;
// an empty name's length, the number of dimensions, a type, an offset.
constexpr std::uint64_t kMinKeyValue = 8 + 4 + 1, kMinTensor = 8 + 4 + 4 + 8;

/// Reads numbers and strings from front to back and never past the end.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  T number(std::string_view what) {
    need(sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::string string(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    LAB_CHECK(length <= kMaxString, "GGUF: {} has {} bytes, more than the {} allowed", what,
              length, kMaxString);
    need(length, what);
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + position_,
                     static_cast<std::size_t>(length));
    position_ += static_cast<std::size_t>(length);
    return text;
  }

  bool boolean(std::string_view what) {
    const auto byte = number<std::uint8_t>(what);
    LAB_CHECK(byte <= 1, "GGUF: {} is a bool with the value {}, expected 0 or 1", what,
              byte);
    return byte == 1;
  }

  /// Checks that `count` items of at least `size` bytes can follow.
  void need_items(std::uint64_t count, std::uint64_t size, std::string_view what) const {
    LAB_CHECK(
        count <= remaining() / size,
        "GGUF: {} says {}, but only {} bytes follow; the file is truncated or damaged",
        what, count, remaining());
  }

 private:
  void need(std::uint64_t n, std::string_view what) const {
    LAB_CHECK(
        n <= remaining(),
        "GGUF: the file ends inside {} ({} bytes needed at offset {}, {} left); it is "
        "truncated or damaged, fetch it again",
        what, n, position_, remaining());
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

template <class T>
T read_scalar(Cursor& in, std::string_view what) {
  if constexpr (std::is_same_v<T, bool>)
    return in.boolean(what);
  else if constexpr (std::is_same_v<T, std::string>)
    return in.string(what);
  else
    return in.number<T>(what);
}

template <class T>
GgufArray read_elements(Cursor& in, std::uint64_t count, std::string_view what) {
  in.need_items(count, std::is_same_v<T, std::string> ? 8 : sizeof(T), what);
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(read_scalar<T>(in, what));
  return out;
}

GgufValue read_array(Cursor& in, std::string_view what) {
  const auto type = in.number<std::uint32_t>(what);
  const auto count = in.number<std::uint64_t>(what);
  LAB_CHECK(type != kGgufArrayType,
            "GGUF: {} is an array of arrays, which is not supported", what);
  LAB_CHECK(type < kGgufTypeCount,
            "GGUF: {} is an array of unknown type {}, expected 0 to {}", what, type,
            kGgufTypeCount - 1);
  LAB_CHECK(count <= kMaxArray, "GGUF: {} has {} elements, more than the {} allowed", what,
            count, kMaxArray);
  GgufArray out;
  // One reader per alternative: the alternative's index is the type's number.
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto read = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
      using Vector = std::variant_alternative_t<Index, GgufArray>;
      if constexpr (!std::is_same_v<Vector, std::monostate>)
        if (type == Index)
          out = read_elements<typename Vector::value_type>(in, count, what);
    };
    (read(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<kGgufTypeCount>{});
  return out;
}

GgufValue read_value(Cursor& in, std::string_view what) {
  const auto type = in.number<std::uint32_t>(what);
  LAB_CHECK(type < kGgufTypeCount, "GGUF: {} has unknown type {}, expected 0 to {}", what,
            type, kGgufTypeCount - 1);
  if (type == kGgufArrayType) return read_array(in, what);
  GgufValue out;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto read = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
      using T = std::variant_alternative_t<Index, GgufValue>;
      if constexpr (!std::is_same_v<T, GgufArray>)
        if (type == Index) out.emplace<Index>(read_scalar<T>(in, what));
    };
    (read(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<kGgufTypeCount>{});
  return out;
}

std::uint32_t read_version(Cursor& in) {
  const auto version = in.number<std::uint32_t>("the version");
  LAB_CHECK(version != 0, "GGUF: version 0 does not exist; the file is damaged");
  LAB_CHECK((version & 0xffff) != 0,
            "GGUF: the file is big-endian, only little-endian is supported; convert it");
  LAB_CHECK(
      version != 1,
      "GGUF: version 1 is no longer supported; convert the model again for version 3");
  LAB_CHECK(version <= 3, "GGUF: version {} is newer than 3, the latest that is supported",
            version);
  return version;
}

void read_metadata(Cursor& in, std::uint64_t count, GgufMetadata& metadata) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = in.string("a metadata key");
    LAB_CHECK(!key.empty(), "GGUF: metadata entry {} has an empty key", i);
    LAB_CHECK(key.size() <= kMaxKey,
              "GGUF: a metadata key has {} bytes, at most {} are allowed", key.size(),
              kMaxKey);
    for (const char c : key)
      LAB_CHECK(c > 0x20 && c < 0x7f,
                "GGUF: metadata key {} has characters that are not ASCII", quote(key));
    GgufValue value = read_value(in, "the value of " + quote(key));
    metadata.add(std::move(key), std::move(value));
  }
}

std::uint32_t read_alignment(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const GgufValue* value = metadata.find(kKey);
  if (value == nullptr) return kGgufDefaultAlignment;
  const auto* alignment = std::get_if<std::uint32_t>(value);
  LAB_CHECK(alignment != nullptr, "GGUF: {} has type {}, expected u32", kKey,
            gguf_type_text(*value));
  LAB_CHECK(*alignment >= 8 && (*alignment & (*alignment - 1)) == 0 &&
                *alignment <= kGgufMaxAlignment,
            "GGUF: {} is {}, expected a power of two from 8 to {}", kKey, *alignment,
            kGgufMaxAlignment);
  return *alignment;
}

/// A tensor's entry, before the data section's start is known.
struct Entry {
  TensorInfo info;
  std::uint64_t offset, bytes;
};

std::vector<std::uint64_t> read_extents(Cursor& in, const std::string& name) {
  const std::string what = "the entry of tensor " + quote(name);
  const auto n_dims = in.number<std::uint32_t>(what);
  LAB_CHECK(n_dims <= kGgufMaxDims,
            "GGUF: tensor {} has {} dimensions, at most {} are allowed", quote(name),
            n_dims, kGgufMaxDims);
  std::vector<std::uint64_t> extents;
  for (std::uint32_t d = 0; d < n_dims; ++d) {
    extents.push_back(in.number<std::uint64_t>(what));
    LAB_CHECK(extents[d] <= std::uint64_t(std::numeric_limits<std::int64_t>::max()),
              "GGUF: tensor {} has a negative extent in dimension {}", quote(name), d);
  }
  return extents;
}

Entry read_tensor(Cursor& in) {
  Entry entry;
  TensorInfo& info = entry.info;
  info.name = in.string("a tensor's name");
  LAB_CHECK(info.name.size() <= kGgufMaxTensorName,
            "GGUF: the name of tensor {} has {} bytes, at most {} are allowed",
            quote(info.name), info.name.size(), kGgufMaxTensorName);
  const std::vector<std::uint64_t> extents = read_extents(in, info.name);
  const std::string what = "the entry of tensor " + quote(info.name);
  const auto type_id = in.number<std::uint32_t>(what);
  entry.offset = in.number<std::uint64_t>(what);

  const GgmlType* type = find_ggml_type(type_id);
  LAB_CHECK(type != nullptr, "GGUF: tensor {} has the unknown or removed type {}",
            quote(info.name), type_id);
  const auto size = detail::checked_size(extents);
  LAB_CHECK(size.has_value(), "GGUF: tensor {} has more elements than 63 bits can count",
            quote(info.name));
  const std::uint64_t row = extents.empty() ? 1 : extents[0];
  LAB_CHECK(row % std::uint64_t(type->block_size) == 0,
            "GGUF: tensor {} has rows of {} elements, which are not whole {} blocks of {}",
            quote(info.name), row, type->name, type->block_size);
  const auto bytes = detail::checked_multiply(std::uint64_t(*size / type->block_size),
                                              std::uint64_t(type->block_bytes));
  LAB_CHECK(bytes.has_value(), "GGUF: tensor {} has more bytes than 64 bits can count",
            quote(info.name));
  entry.bytes = *bytes;
  info.type_name = type->name;
  info.dtype = type->dtype;
  info.shape.assign(extents.rbegin(), extents.rend());
  return entry;
}

std::vector<Entry> read_tensors(Cursor& in, std::uint64_t count) {
  in.need_items(count, kMinTensor, "the number of tensors");
  std::vector<Entry> entries;
  entries.reserve(static_cast<std::size_t>(count));
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    entries.push_back(read_tensor(in));
    const std::string& name = entries.back().info.name;
    LAB_CHECK(names.insert(name).second, "GGUF: tensor {} occurs twice", quote(name));
  }
  return entries;
}

/// Checks that the tensors lie back to back, and returns where the last one ends.
std::uint64_t check_offsets(const std::vector<Entry>& entries, std::uint64_t alignment) {
  std::uint64_t end = 0, padded = 0;
  for (const Entry& e : entries) {
    LAB_CHECK(
        e.offset == padded,
        "GGUF: tensor {} is at offset {} of the data section, expected {}: tensors must "
        "follow each other without gaps",
        quote(e.info.name), e.offset, padded);
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    LAB_CHECK(e.bytes <= kMax - padded && padded + e.bytes <= kMax - (alignment - 1),
              "GGUF: the tensors up to {} have more bytes than 64 bits can count",
              quote(e.info.name));
    end = padded + e.bytes;
    padded = (end + alignment - 1) / alignment * alignment;
  }
  return end;
}

}  // namespace

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

GgufFile parse_gguf(std::span<const std::byte> bytes) {
  LAB_CHECK(is_gguf(bytes), "not a GGUF file: it does not begin with 'GGUF'");
  Cursor in(bytes.subspan(kMagic.size()));
  GgufFile file;
  file.version = read_version(in);
  const auto n_tensors = in.number<std::uint64_t>("the number of tensors");
  const auto n_entries = in.number<std::uint64_t>("the number of metadata entries");
  in.need_items(n_tensors, kMinTensor, "the number of tensors");
  in.need_items(n_entries, kMinKeyValue, "the number of metadata entries");
  read_metadata(in, n_entries, file.metadata);
  file.alignment = read_alignment(file.metadata);

  std::vector<Entry> entries = read_tensors(in, n_tensors);
  const std::uint64_t data_bytes = check_offsets(entries, file.alignment);

  const std::size_t header = kMagic.size() + in.position();
  file.data_offset = (header + file.alignment - 1) / file.alignment * file.alignment;
  if (data_bytes == 0) file.data_offset = std::min(file.data_offset, bytes.size());
  LAB_CHECK(
      file.data_offset <= bytes.size() && data_bytes <= bytes.size() - file.data_offset,
      "GGUF: the tensors need {} bytes from offset {}, but the file has {} bytes in all; "
      "it is truncated, fetch it again",
      data_bytes, file.data_offset, bytes.size());
  const std::span<const std::byte> data = bytes.subspan(file.data_offset);
  file.tensors.reserve(entries.size());
  for (Entry& e : entries) {
    // A tensor without bytes may follow the last one's padding, which need not be there.
    if (e.bytes > 0)
      e.info.data = data.subspan(static_cast<std::size_t>(e.offset),
                                 static_cast<std::size_t>(e.bytes));
    file.tensors.push_back(std::move(e.info));
  }
  return file;
}

}  // namespace lab
