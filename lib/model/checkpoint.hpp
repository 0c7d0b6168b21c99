/// @file
/// The named tensors of a model file, whatever its format, and how a program asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lab/core/dtype.hpp"

namespace lab {

/// One tensor of a model file. `data` points into the file's bytes.
struct TensorInfo {
  std::string name;
  std::string type_name;       ///< as its format writes it: "Q4_0", "IQ2_XXS", "BF16"
  std::optional<DType> dtype;  ///< empty: a known type that decodelab cannot compute with
  std::vector<std::int64_t>
      shape;  ///< outermost first, last is contiguous; empty: a scalar
  std::span<const std::byte> data;  ///< exactly the tensor's bytes; may be unaligned

  std::int64_t size() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
};

/// "(192, 576)"; a scalar is "()".
std::string shape_text(std::span<const std::int64_t> shape);

/// The tensors of one model, found by name. Does not own the bytes they point to.
class Checkpoint {
 public:
  Checkpoint() = default;
  /// @param tensors  in file order
  /// @throws Error if two have the same name
  explicit Checkpoint(std::vector<TensorInfo> tensors);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  /// @return the tensor, or null
  const TensorInfo* find(std::string_view name) const;

  /// Asks for a tensor by name, storage type and shape.
  /// @param name     exact name
  /// @param allowed  acceptable storage types; empty: every type in DType
  /// @param shape    outermost first
  /// @throws Error that says what was expected and what was found
  const TensorInfo& bind(std::string_view name, std::span<const DType> allowed,
                         std::span<const std::int64_t> shape) const;

 private:
  [[noreturn]] void throw_missing(std::string_view name) const;

  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace lab
