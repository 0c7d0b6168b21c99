/// @file
/// Exercise 02-cuda: an append to a KV cache and a matrix-vector product as CUDA kernels.
/// README.md says how.
#include "cuda.hpp"

namespace exercise {

// ---------------------------------------------------------------- task 1

/// Task 1. `value` as the nearest number that 16 bits can hold, rounded once; infinity
/// beyond 65504, NaN for NaN. CUDA has a function for it.
__device__ inline __half to_half(float value) {
  // Your code here.
  return not_written<__half>("exercise 02-cuda, task 1: to_half is not written yet");
}

// ---------------------------------------------------------------- task 2

/// Writes the keys and values of T new tokens into the cache: token t into row slots[t],
/// and nowhere if slots[t] is negative (a token that only fills up the batch).
/// @param cache_k,cache_v  (capacity, width); rows that no token names stay as they are
/// @param k,v              (T, width), width = K Dh
/// @param slots            (T), each below capacity, none twice
/// @param to_half          rounds one number; known to be right
template <class ToHalf>
__global__ void append_kernel(__half* cache_k, __half* cache_v, const float* k,
                              const float* v, const int* slots, int n_tokens, int width,
                              ToHalf to_half) {
  // Your code here.
}

/// Task 2. Launches append_kernel, with enough threads that neighbours in a warp handle
/// neighbours in a row. n_tokens and width are at least 1.
template <class ToHalf>
void kv_append(__half* cache_k, __half* cache_v, const float* k, const float* v,
               const int* slots, int n_tokens, int width, ToHalf to_half) {
  // Your code here.
  throw std::logic_error("exercise 02-cuda, task 2: kv_append is not written yet");
}

// ---------------------------------------------------------------- task 3

/// A matrix times a vector, one warp for each row: y[r] = sum_c w[r, c] x[c].
/// @param y         (n_rows)
/// @param w         (n_rows, n_cols), at an address that is a multiple of 16
/// @param x         (n_cols), likewise
/// @param n_cols    a multiple of 4, so that every row starts at a multiple of 16 bytes
/// @param warp_sum  the sum of a value over a warp, for each of its threads: all 32 must
/// call
template <class WarpSum>
__global__ void gemv_kernel(float* y, const float* w, const float* x, int n_rows,
                            int n_cols, WarpSum warp_sum) {
  // Your code here.
}

/// Task 3. Launches gemv_kernel: one warp for each row, several warps in a block, and no
/// more than one block with warps that have no row. n_rows and n_cols are at least 1.
template <class WarpSum>
void gemv(float* y, const float* w, const float* x, int n_rows, int n_cols,
          WarpSum warp_sum) {
  // Your code here.
  throw std::logic_error("exercise 02-cuda, task 3: gemv is not written yet");
}

}  // namespace exercise
