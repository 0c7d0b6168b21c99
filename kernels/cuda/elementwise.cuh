/// @file
/// Operations on the elements of two arrays of one size.
#pragma once

#include "cuda/reduce.cuh"

namespace lab::LAB_GPU {
namespace {

constexpr int kElementwiseBlock = 256;

// Not __restrict__: out may be a or b. Each thread has read its elements before it writes.
template <int kVec, class F>
__global__ void __launch_bounds__(kElementwiseBlock)
    elementwise_kernel(float* out, const float* a, const float* b, std::int64_t n, F f) {
  const std::int64_t i =
      (std::int64_t(blockIdx.x) * kElementwiseBlock + threadIdx.x) * kVec;
  if (i + kVec <= n) {
    const Pack<kVec> x = load_pack<kVec>(a + i), y = load_pack<kVec>(b + i);
    Pack<kVec> z;
#pragma unroll
    for (int j = 0; j < kVec; ++j) z.at[j] = f(x.at[j], y.at[j]);
    store_pack(out + i, z);
  } else {
    for (std::int64_t j = i; j < n; ++j) out[j] = f(a[j], b[j]);  // what four do not divide
  }
}

/// out[i] = f(a[i], b[i])
template <class F>
void elementwise(float* out, const float* a, const float* b, std::int64_t n, F f,
                 Stream stream) {
  if (n == 0) return;
  const auto run = [&](auto kernel, int vec) {
    const auto blocks = unsigned(ceil_div(n, std::int64_t(kElementwiseBlock) * vec));
    launch(kernel, {dim3(blocks), dim3(kElementwiseBlock), 0, stream}, out, a, b, n, f);
  };
  if (all_aligned(out, a, b))
    run(elementwise_kernel<4, F>, 4);
  else
    run(elementwise_kernel<1, F>, 1);
}

}  // namespace
}  // namespace lab::LAB_GPU
