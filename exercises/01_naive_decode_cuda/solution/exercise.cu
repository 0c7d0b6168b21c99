/// @file
/// Exercise 01-cuda: a residual addition and RMSNorm as CUDA kernels. README.md says how.
#include "cuda.hpp"

namespace exercise {

// ---------------------------------------------------------------- task 1

/// One thread for each element: out[i] = a[i] + b[i].
/// @param out,a,b  (n); out may be a
__global__ void add_kernel(float* out, const float* a, const float* b, std::int64_t n) {
  // BEGIN SOLUTION
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
  // SKELETON
  // END SOLUTION
}

/// Task 1. Launches add_kernel: enough blocks for n threads, none of them needlessly; n is
/// at least 1.
inline void add(float* out, const float* a, const float* b, std::int64_t n) {
  // BEGIN SOLUTION
  constexpr int kBlock = 256;
  launch(add_kernel, {dim3(unsigned(ceil_div(n, kBlock))), dim3(kBlock)}, out, a, b, n);
  // SKELETON
  // throw std::logic_error("exercise 01-cuda, task 1: add is not written yet");
  // END SOLUTION
}

// ---------------------------------------------------------------- task 2

/// Task 2. The sum of `value` over the 32 threads of a warp, in five shuffles and without
/// shared memory. Every thread of the warp calls it, and every one gets the sum.
__device__ inline float warp_sum(float value) {
  // BEGIN SOLUTION
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
  // SKELETON
  // return not_written<float>("exercise 01-cuda, task 2: warp_sum is not written yet");
  // END SOLUTION
}

// ---------------------------------------------------------------- task 3

/// Task 3. The sum of `value` over all threads of a block, which has 1 to 32 whole warps.
/// Every thread of the block calls it, and every one gets the sum. A kernel may call it
/// again at once.
/// @param warp_sum  a warp's sum that is known to be right, as task 2 describes it
template <class WarpSum>
__device__ float block_sum(float value, WarpSum warp_sum) {
  // BEGIN SOLUTION
  __shared__ float partial[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();  // every warp's sum is there
  value = warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
  __syncthreads();  // all have read: the next call may write
  return value;
  // SKELETON
  // return not_written<float>("exercise 01-cuda, task 3: block_sum is not written yet");
  // END SOLUTION
}

// ---------------------------------------------------------------- task 4

/// One block for each row: out[r, i] = x[r, i] weight[i] / sqrt(mean_j x[r, j]^2 + eps).
/// @param out,x      (n_rows, width); out may be x
/// @param weight     (width)
/// @param block_sum  a block's sum that is known to be right, as task 3 describes it
template <class BlockSum>
__global__ void rms_norm_kernel(float* out, const float* x, const float* weight, int width,
                                float eps, BlockSum block_sum) {
  // BEGIN SOLUTION
  const float* row = x + std::int64_t(blockIdx.x) * width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares += row[i] * row[i];
  const float scale = rsqrtf(block_sum(squares) / float(width) + eps);
  float* out_row = out + std::int64_t(blockIdx.x) * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    out_row[i] = row[i] * scale * weight[i];
  // SKELETON
  // END SOLUTION
}

/// Task 4. Launches rms_norm_kernel: one block for each row, of whole warps, at most 1024
/// threads, and no more warps than the row has pieces of 32 elements. n_rows and width are
/// at least 1.
template <class BlockSum>
void rms_norm(float* out, const float* x, const float* weight, int n_rows, int width,
              float eps, BlockSum block_sum) {
  // BEGIN SOLUTION
  const int n_warps = std::min<int>(8, int(ceil_div(width, 32)));
  launch(rms_norm_kernel<BlockSum>, {dim3(unsigned(n_rows)), dim3(unsigned(32 * n_warps))},
         out, x, weight, width, eps, block_sum);
  // SKELETON
  // throw std::logic_error("exercise 01-cuda, task 4: rms_norm is not written yet");
  // END SOLUTION
}

}  // namespace exercise
