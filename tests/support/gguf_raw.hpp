/// @file
/// GGUF files byte by byte, for what GgufWriter refuses to write.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lab::test {

struct RawGguf {
  std::vector<std::byte> bytes;

  RawGguf& raw(const void* data, std::size_t n) {
    const auto* p = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), p, p + n);
    return *this;
  }
  RawGguf& u8(std::uint8_t v) { return raw(&v, sizeof v); }
  RawGguf& u32(std::uint32_t v) { return raw(&v, sizeof v); }
  RawGguf& u64(std::uint64_t v) { return raw(&v, sizeof v); }
  RawGguf& string(const std::string& text) {
    return u64(text.size()).raw(text.data(), text.size());
  }
  RawGguf& header(std::uint32_t version, std::uint64_t n_tensors, std::uint64_t n_entries) {
    return raw("GGUF", 4).u32(version).u64(n_tensors).u64(n_entries);
  }
  /// @param extents  as stored: the contiguous one first
  RawGguf& tensor(const std::string& name, const std::vector<std::uint64_t>& extents,
                  std::uint32_t type, std::uint64_t offset) {
    string(name).u32(static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t extent : extents) u64(extent);
    return u32(type).u64(offset);
  }
  RawGguf& pad(std::size_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
};

}  // namespace lab::test
