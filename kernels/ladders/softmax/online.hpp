/// @file
/// The running maximum and sum of a softmax.
/// @par Source Milakov and Gimelshein 2018, arXiv:1805.02867
#pragma once

#include "ladders/block.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
/// What is known of the elements seen so far: `sum` is that of exp(x - max).
struct Online {
  float max = -INFINITY, sum = 0;

  /// What exponents are taken from: 0 while there is no maximum, for -inf - -inf is no
  /// number.
  __device__ float origin() const { return max == -INFINITY ? 0 : max; }
  /// A larger maximum scales the sum so far down to it.
  __device__ void raise(float m) {
    if (m > max) sum *= expf(max - m), max = m;
  }
  __device__ void add(float x) {
    raise(x);
    sum += expf(x - origin());
  }
  __device__ void merge(Online other) {
    raise(other.max);
    sum += other.sum * expf(other.max - origin());
  }
};

template <int kLanes>
__device__ Online warp_merge(Online v) {
  for (int d = kLanes / 2; d > 0; d /= 2)
    v.merge(
        {__shfl_xor_sync(0xffffffffu, v.max, d), __shfl_xor_sync(0xffffffffu, v.sum, d)});
  return v;
}

/// Over the block, as block_reduce: two words a warp, one barrier.
__device__ Online block_merge(Online v) {
  __shared__ float maxima[kWarps], sums[kWarps];
  v = warp_merge<32>(v);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) maxima[warp] = v.max, sums[warp] = v.sum;
  __syncthreads();
  return warp_merge<kWarps>({maxima[lane % kWarps], sums[lane % kWarps]});
}
// [endregion]

}  // namespace
}  // namespace lab::LAB_GPU
