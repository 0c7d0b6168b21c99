/// @file
/// The linear layer y = x W^T, with weights in any format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lab/core/buffer.hpp"
#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab {

/// How a linear layer with quantised weights reads its activations.
enum class Activations {
  f32,   ///< as they are: exact up to rounding
  int8,  ///< rounded to 8 bits for each block of 32 columns, for integer dot products
};

}  // namespace lab

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
  /// @return the tiles of kernels/cpu/pack.hpp
  const std::byte* packed() const { return packed_; }
  /// @return bytes of the packed weights: what one call reads
  std::size_t bytes() const { return bytes_; }

  /// y[t, r] = sum_c x[t, c] * W[r, c]. The result of a token does not depend on which
  /// other tokens are in the call, nor on the number of threads: it is the same bits.
  /// @param[out] y (T, out)
  /// @param[in]  x (T, in); T = 0 does nothing
  /// @param[in]  activations F32, F16 and BF16 weights ignore it: they read f32
  /// @throws Error if a shape disagrees
  /// @par Numerics f32: sums in f32, first over each block of 32 columns (16 for some K
  ///      formats). int8: x is rounded to multiples of its largest magnitude in the block
  ///      of 32 columns over 127 (blocks below 2^-120 become zero); sums over a block are
  ///      exact integers, sums of blocks f32. A block with a NaN or an infinity gives NaN.
  /// @par Cost 2 * T * rows * cols operations and bytes() bytes: memory-bound for small T
  void operator()(HostView<float, 2> y, HostView<const float, 2> x,
                  Activations activations = Activations::f32) const;

 private:
  DType dtype_ = DType::f32;
  std::int64_t rows_ = 0, cols_ = 0;
  std::size_t bytes_ = 0;
  const std::byte* packed_ = nullptr;  // in own_ or in an arena
  Buffer own_;
};

/// One of several products of the same activations: y = x W^T.
struct Projection {
  const Linear* weights;  // (out, in)
  HostView<float, 2> y;   // (T, out)
};

/// Several products of one x, for example Q, K and V: x is prepared once, and the threads
/// start once for all weights. The same bits as one call for each.
/// @param[in] x (T, in)
/// @throws Error if a shape disagrees
void linear_group(std::span<const Projection> outputs, HostView<const float, 2> x,
                  Activations activations = Activations::f32);

/// y = silu(x Wgate^T) * (x Wup^T), without the two products as whole tensors. The same
/// bits as two linear layers and @ref silu_mul.
/// @param[out] y       (T, F)
/// @param[in]  gate,up (F, in)
/// @param[in]  x       (T, in)
/// @throws Error if a shape disagrees
/// @par Source Shazeer 2020, arXiv:2002.05202
void swiglu(HostView<float, 2> y, const Linear& gate, const Linear& up,
            HostView<const float, 2> x, Activations activations = Activations::f32);

namespace reference {
/// What @ref lab::cpu::Linear computes, by definition. Decodes each row, then plain loops.
/// @param[out] y (T, out)
/// @param[in]  x (T, in)
/// @param[in]  weights (out, in)
/// @throws Error if a shape disagrees
void linear(HostView<float, 2> y, HostView<const float, 2> x, HostWeightView weights);
}  // namespace reference

}  // namespace lab::cpu

// On a GPU a Linear has its weights in device memory, repacked once for the kernels (the
// layout: kernels/cuda/planes.hpp), and move-only. The upload is in the order of `stream`;
// `weights` is not needed after the constructor. data() is the packed memory.
//
// operator(): as on the CPU. Up to 8 tokens are multiplied in f32 as the weights stream by;
// more on tensor cores, with x split into two f16 so that 22 bits of it count. In each of
// the two a token's result does not depend on the other tokens of the call.
LAB_GPU_VERSIONS(class Linear {
 public:
  Linear() = default;
  explicit Linear(HostWeightView weights, Stream stream = nullptr);
  Linear(Linear && other) noexcept;
  Linear& operator=(Linear&& other) noexcept;
  ~Linear();

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  DType dtype() const { return dtype_; }
  std::size_t bytes() const { return bytes_; }
  const std::byte* data() const { return data_; }

  void operator()(DeviceView<float, 2> y, DeviceView<const float, 2> x, Stream stream)
      const;

 private:
  void upload(HostWeightView weights);

  DType dtype_ = DType::f32;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::size_t bytes_ = 0;
  std::byte* data_ = nullptr;
  Stream stream_ = nullptr;
};)
