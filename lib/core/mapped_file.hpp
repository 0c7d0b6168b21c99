/// @file
/// A file's bytes in memory, read only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace lab {

/// Maps a whole file for reading. Pages are read when touched, and may be given back.
class MappedFile {
 public:
  MappedFile() = default;
  /// @throws Error if the file is missing, not a regular file, or cannot be read
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Drops the pages that lie wholly inside `part` from memory; touching them reads the
  /// file again. Packing calls it behind itself, so that a model is never in memory twice.
  void release(std::span<const std::byte> part) const;

 private:
  void swap(MappedFile& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lab
