/// @file
/// What the kernels on rows and on elements share: wide accesses and reductions.
#pragma once

#include "cuda/compat.hpp"

namespace lab::LAB_GPU {
namespace {

/// N floats that one instruction loads or stores; N = 4 moves the most bytes.
template <int N>
struct alignas(4 * N) Pack {
  float at[N];
};
template <int N>
__device__ __forceinline__ Pack<N> load_pack(const float* p) {
  return *reinterpret_cast<const Pack<N>*>(p);
}
template <int N>
__device__ __forceinline__ void store_pack(float* p, const Pack<N>& v) {
  *reinterpret_cast<Pack<N>*>(p) = v;
}

/// Whether every pointer can be read in packs of four.
template <class... T>
bool all_aligned(const T*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % sizeof(Pack<4>) == 0) && ...);
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

/// The value of the lane whose number differs in the bits of `lanes`. Overloaded for types
/// that one shuffle cannot move.
template <class T>
__device__ __forceinline__ T shuffle_xor(T v, int lanes) {
  return __shfl_xor_sync(0xffffffffu, v, lanes);
}

/// Every lane gets the reduction of the warp's 32 values.
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T v, Op op) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) v = op(v, shuffle_xor(v, distance));
  return v;
}

/// Every thread gets the reduction of kThreads values: those of its warp if kThreads is 32,
/// else those of its block. `identity` changes no value that it is reduced with. Once per
/// kernel: a second call would overwrite what slow threads still read of the first.
template <int kThreads, class T, class Op>
__device__ __forceinline__ T reduce(T v, Op op, T identity) {
  v = warp_reduce(v, op);
  if constexpr (kThreads > 32) {
    __shared__ T of_warp[kThreads / 32];
    const int lane = threadIdx.x % 32;
    if (lane == 0) of_warp[threadIdx.x / 32] = v;
    __syncthreads();
    v = warp_reduce(lane < kThreads / 32 ? of_warp[lane] : identity, op);
  }
  return v;
}

/// How rows are dealt to threads: a short row to a warp, four of which make a block, and a
/// long row to a block of its own.
constexpr int kRowsPerBlock = 4;
constexpr std::int64_t kShortRow = 512;
template <int kThreads>
Grid row_grid(std::int64_t n_rows, Stream stream) {
  if constexpr (kThreads == 32)
    return {dim3(unsigned(ceil_div(n_rows, kRowsPerBlock))), dim3(32, kRowsPerBlock), 0,
            stream};
  else
    return {dim3(unsigned(n_rows)), dim3(kThreads), 0, stream};
}
/// The row of this thread; not always one that exists.
template <int kThreads>
__device__ __forceinline__ std::int64_t row_of_thread() {
  return kThreads == 32 ? std::int64_t(blockIdx.x) * kRowsPerBlock + threadIdx.y
                        : std::int64_t(blockIdx.x);
}

/// How rows that are few and long are divided among blocks, so that more than a few
/// multiprocessors read them. A warp can reduce the parts' results.
struct RowParts {
  int count = 1, size;

  RowParts(std::int64_t n_rows, int row_size) : size(row_size) {
    constexpr int kMost = 32, kLeastSize = 8192, kCacheLine = 32;
    if (n_rows >= kMost || row_size < 2 * kLeastSize) return;
    count = row_size / kLeastSize < kMost ? row_size / kLeastSize : kMost;
    size = int(ceil_div(ceil_div(row_size, count), kCacheLine)) * kCacheLine;
  }
};

}  // namespace
}  // namespace lab::LAB_GPU
