/// @file
/// The linear layer y = x W^T, with weights in any format and f32 activations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/core/buffer.hpp"
#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"

namespace lab::cpu {

/// A weight matrix, packed once so that a kernel reads it from first byte to last. It keeps
/// the file's precision; the layout is documented in kernels/cpu/pack.hpp.
class Linear {
 public:
  /// No rows, no columns.
  Linear() = default;

  /// Packs on n_threads() threads; `weights` is not needed afterwards.
  /// @param weights (out, in)
  /// @param arena   where the packed weights go; it must outlive this. Null: memory of its
  /// own
  /// @throws Error unless a row is whole blocks
  explicit Linear(HostWeightView weights, Arena* arena = nullptr);

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  DType dtype() const { return dtype_; }
  /// @return bytes of the packed weights: what one call reads
  std::size_t bytes() const { return bytes_; }

  /// y[t, r] = sum_c x[t, c] * W[r, c]. The result of a token does not depend on which
  /// other tokens are in the call, nor on the number of threads: it is the same bits.
  /// @param[out] y (T, out)
  /// @param[in]  x (T, in); T = 0 does nothing
  /// @throws Error if a shape disagrees
  /// @par Numerics sums in f32, first over each block of 32 columns (16 for some K formats)
  /// @par Cost 2 * T * rows * cols operations and bytes() bytes: memory-bound for small T
  void operator()(HostView<float, 2> y, HostView<const float, 2> x) const;

 private:
  DType dtype_ = DType::f32;
  std::int64_t rows_ = 0, cols_ = 0;
  std::size_t bytes_ = 0;
  const std::byte* packed_ = nullptr;  // in own_ or in an arena
  Buffer own_;
};

namespace reference {
/// What @ref lab::cpu::Linear computes, by definition. Decodes each row, then plain loops.
/// @param[out] y (T, out)
/// @param[in]  x (T, in)
/// @param[in]  weights (out, in)
/// @throws Error if a shape disagrees
void linear(HostView<float, 2> y, HostView<const float, 2> x, HostWeightView weights);
}  // namespace reference

}  // namespace lab::cpu
