/// @file
/// The two ways of multiplying that a Linear chooses between.
#pragma once

#include "cuda/formats.cuh"

namespace lab::LAB_GPU {

/// y (T, rows) = x (T, cols) W^T.
struct Product {
  Planes weights;
  DType dtype;
  std::int64_t rows, cols;
  float* y;
  const float* x;
  std::int64_t n_tokens;
};

class Linear;
/// @return the planes of its packed weights
Planes planes_of(const Linear& weights);

/// Tokens that gemv() multiplies in one pass over the weights.
inline constexpr int kGemvTokens = 4;

/// Whether the rows of x can be read in float4.
inline bool can_load_quads(const Product& p) {
  return p.cols % 4 == 0 && reinterpret_cast<std::uintptr_t>(p.x) % 16 == 0;
}
/// Elements col to col + 3 of a row of x; those that do not exist are zero.
__device__ __forceinline__ float4 load_quad(const float* x, std::int64_t col,
                                            std::int64_t cols, bool aligned) {
  if (aligned && col + 4 <= cols) return *reinterpret_cast<const float4*>(x + col);
  float4 v = make_float4(0, 0, 0, 0);
  if (col < cols) v.x = x[col];
  if (col + 1 < cols) v.y = x[col + 1];
  if (col + 2 < cols) v.z = x[col + 2];
  if (col + 3 < cols) v.w = x[col + 3];
  return v;
}

/// Few tokens: limited by the memory that the weights are read from. A token's result is
/// the same bits whatever other tokens are there.
void gemv(const Product& p, Stream stream);

/// Many tokens: limited by tensor cores. Again the same bits in any company.
void gemm(const Product& p, Stream stream);

}  // namespace lab::LAB_GPU
