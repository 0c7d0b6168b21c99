/// @file
/// Reductions over a warp with shuffles: 5 exchanges for 32 lanes, and no shared memory.
#pragma once

#include "cuda/compat.hpp"

namespace lab::LAB_GPU {

// [region kernel]
/// Combines the values of each group of kLanes lanes; all of them get the result.
template <int kLanes = 32, class T, class Combine>
__device__ __forceinline__ T warp_reduce(T v, Combine combine) {
  for (int d = kLanes / 2; d > 0; d /= 2)
    v = combine(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
// [endregion]

/// a + b
struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
/// The larger; the other where one is NaN.
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// @return the sum over the warp, in every lane
template <class T>
__device__ __forceinline__ T warp_sum(T v) {
  return warp_reduce(v, Add{});
}

}  // namespace lab::LAB_GPU
