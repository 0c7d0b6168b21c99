/// @file
/// GGUF: writer side.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lab/core/dtype.hpp"
#include "lab/model/gguf.hpp"

namespace lab {

/// Collects metadata and tensors, then writes them as one GGUF file of version 3.
class GgufWriter {
 public:
  /// @param alignment  recorded in the file unless it is the default
  /// @throws Error unless it is a power of two in [8, kGgufMaxAlignment]
  explicit GgufWriter(std::uint32_t alignment = kGgufDefaultAlignment);

  /// The C++ type of `value` decides its type in the file: give std::uint32_t{1}, not 1.
  /// @throws Error if the key is there already
  void add(std::string key, GgufValue value);

  /// @param shape  outermost first
  /// @param data   copied; as many bytes as dtype and shape say
  /// @throws Error if the name, the shape or the number of bytes cannot be stored
  void add_tensor(std::string name, DType dtype, std::vector<std::int64_t> shape,
                  std::span<const std::byte> data);

  /// @return the file's bytes
  std::vector<std::byte> bytes() const;

  /// @throws Error if the file cannot be written
  void write(const std::filesystem::path& path) const;

 private:
  struct Entry {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> data;
  };
  std::uint32_t alignment_;
  GgufMetadata metadata_;
  std::vector<Entry> tensors_;
};

}  // namespace lab
