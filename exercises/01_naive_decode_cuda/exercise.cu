/// @file
/// Exercise 01-cuda: a residual addition and RMSNorm as CUDA kernels. README.md says how.
#include "cuda.hpp"

namespace exercise {

// ---------------------------------------------------------------- task 1

/// One thread for each element: out[i] = a[i] + b[i].
/// @param out,a,b  (n); out may be a
__global__ void add_kernel(float* out, const float* a, const float* b, std::int64_t n) {
  // Your code here.
}

/// Task 1. Launches add_kernel: enough blocks for n threads, none of them needlessly; n is
/// at least 1.
inline void add(float* out, const float* a, const float* b, std::int64_t n) {
  // Your code here.
  throw std::logic_error("exercise 01-cuda, task 1: add is not written yet");
}

// ---------------------------------------------------------------- task 2

/// Task 2. The sum of `value` over the 32 threads of a warp, in five shuffles and without
/// shared memory. Every thread of the warp calls it, and every one gets the sum.
__device__ inline float warp_sum(float value) {
  // Your code here.
  return not_written<float>("exercise 01-cuda, task 2: warp_sum is not written yet");
}

// ---------------------------------------------------------------- task 3

/// Task 3. The sum of `value` over all threads of a block, which has 1 to 32 whole warps.
/// Every thread of the block calls it, and every one gets the sum. A kernel may call it
/// again at once.
/// @param warp_sum  a warp's sum that is known to be right, as task 2 describes it
template <class WarpSum>
__device__ float block_sum(float value, WarpSum warp_sum) {
  // Your code here.
  return not_written<float>("exercise 01-cuda, task 3: block_sum is not written yet");
}

// ---------------------------------------------------------------- task 4

/// One block for each row: out[r, i] = x[r, i] weight[i] / sqrt(mean_j x[r, j]^2 + eps).
/// @param out,x      (n_rows, width); out may be x
/// @param weight     (width)
/// @param block_sum  a block's sum that is known to be right, as task 3 describes it
template <class BlockSum>
__global__ void rms_norm_kernel(float* out, const float* x, const float* weight, int width,
                                float eps, BlockSum block_sum) {
  // Your code here.
}

/// Task 4. Launches rms_norm_kernel: one block for each row, of whole warps, at most 1024
/// threads, and no more warps than the row has pieces of 32 elements. n_rows and width are
/// at least 1.
template <class BlockSum>
void rms_norm(float* out, const float* x, const float* weight, int n_rows, int width,
              float eps, BlockSum block_sum) {
  // Your code here.
  throw std::logic_error("exercise 01-cuda, task 4: rms_norm is not written yet");
}

}  // namespace exercise
