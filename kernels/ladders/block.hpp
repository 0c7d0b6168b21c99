/// @file
/// Reductions over a block of kBlock threads.
#pragma once

#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {

// [region kernel]
/// Combines the values of the block's threads: one word a warp, one barrier. Between two
/// calls with the same `Combine` there must be another barrier.
template <class Combine>
__device__ float block_reduce(float v, Combine combine) {
  __shared__ float partial[kWarps];
  v = warp_reduce(v, combine);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_reduce<kWarps>(partial[threadIdx.x % kWarps], combine);
}
// [endregion]

}  // namespace lab::LAB_GPU
