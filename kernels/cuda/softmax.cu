#include "lab/kernels/softmax.hpp"

#include <cmath>

#include "cuda/reduce.cuh"
#include "cuda/scratch.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kBlock = 512;

/// What is known of some of a row's elements: their maximum, and the sum of exp(x - max).
struct Partial {
  float max, sum;
};
/// exp(from - to): a factor for sums whose maximum was `from` and becomes `to`. Equal ones
/// are told apart because infinities have no difference.
__device__ __forceinline__ float rescale(float from, float to) {
  return from == to ? 1.0f : expf(from - to);
}
struct Combine {
  __device__ Partial operator()(Partial a, Partial b) const {
    const float max = fmaxf(a.max, b.max);
    return {max, a.sum * rescale(a.max, max) + b.sum * rescale(b.max, max)};
  }
};
/// @par Source Milakov and Gimelshein 2018, arXiv:1805.02867: maximum and sum in one pass
template <int kVec>
__device__ __forceinline__ void include(Partial& p, const Pack<kVec>& v) {
  float max = p.max;
#pragma unroll
  for (int j = 0; j < kVec; ++j) max = fmaxf(max, v.at[j]);
  if (max != p.max) p = {max, p.sum * expf(p.max - max)};
#pragma unroll
  for (int j = 0; j < kVec; ++j)  // -inf adds nothing; while all is -inf, x - max is NaN
    p.sum += v.at[j] == -INFINITY ? 0.0f : expf(v.at[j] - max);
}

__device__ __forceinline__ Partial shuffle_xor(Partial p, int lanes) {
  return {__shfl_xor_sync(0xffffffffu, p.max, lanes),
          __shfl_xor_sync(0xffffffffu, p.sum, lanes)};
}

/// The elements [begin, end) of a row, read by kThreads threads.
template <int kVec, int kThreads>
__device__ __forceinline__ Partial partial_of(const float* x, int begin, int end) {
  Partial p = {-INFINITY, 0};
#pragma unroll 4
  for (int i = begin + int(threadIdx.x) * kVec; i < end; i += kThreads * kVec)
    include(p, load_pack<kVec>(x + i));
  return reduce<kThreads>(p, Combine(), Partial{-INFINITY, 0});
}
/// Not __restrict__: out may be x.
template <int kVec, int kThreads>
__device__ __forceinline__ void normalise(float* out, const float* x, int begin, int end,
                                          Partial row) {
  const float scale = 1 / row.sum;  // of a row of nothing but -inf: infinite, times NaN
#pragma unroll 4
  for (int i = begin + int(threadIdx.x) * kVec; i < end; i += kThreads * kVec) {
    Pack<kVec> v = load_pack<kVec>(x + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) v.at[j] = expf(v.at[j] - row.max) * scale;
    store_pack(out + i, v);
  }
}

/// A row is reduced and written by the same threads.
template <int kVec, int kThreads>
__global__ void __launch_bounds__(kThreads == 32 ? 32 * kRowsPerBlock : kThreads)
    softmax_kernel(float* out, const float* x, std::int64_t n_tokens, int vocab_size) {
  const std::int64_t t = row_of_thread<kThreads>();
  if (t >= n_tokens) return;
  const float* in = x + t * vocab_size;
  const Partial row = partial_of<kVec, kThreads>(in, 0, vocab_size);
  normalise<kVec, kThreads>(out + t * vocab_size, in, 0, vocab_size, row);
}

/// Few and long rows: block (part, t) reduces its part of row t ...
template <int kVec>
__global__ void __launch_bounds__(kBlock)
    reduce_parts_kernel(Partial* __restrict__ partials, const float* __restrict__ x,
                        int vocab_size, int part_size) {
  const std::int64_t t = blockIdx.y;
  const int begin = int(blockIdx.x) * part_size, end = min(begin + part_size, vocab_size);
  const Partial p = partial_of<kVec, kBlock>(x + t * vocab_size, begin, end);
  if (threadIdx.x == 0) partials[t * gridDim.x + blockIdx.x] = p;
}
/// ... and then, with all parts reduced, writes it.
template <int kVec>
__global__ void __launch_bounds__(kBlock)
    normalise_parts_kernel(float* out, const float* x, const Partial* __restrict__ partials,
                           int vocab_size, int part_size) {
  const std::int64_t t = blockIdx.y;
  const int lane = threadIdx.x % 32;
  Partial row = {-INFINITY, 0};
  if (lane < int(gridDim.x)) row = partials[t * gridDim.x + lane];
  row = warp_reduce(row, Combine());
  const int begin = int(blockIdx.x) * part_size, end = min(begin + part_size, vocab_size);
  normalise<kVec, kBlock>(out + t * vocab_size, x + t * vocab_size, begin, end, row);
}

template <int kVec>
void run(float* out, const float* x, std::int64_t n_tokens, int vocab_size, Stream stream) {
  if (vocab_size <= kShortRow) {
    launch(softmax_kernel<kVec, 32>, row_grid<32>(n_tokens, stream), out, x, n_tokens,
           vocab_size);
    return;
  }
  const RowParts parts(n_tokens, vocab_size);
  if (parts.count == 1) {
    launch(softmax_kernel<kVec, kBlock>, row_grid<kBlock>(n_tokens, stream), out, x,
           n_tokens, vocab_size);
    return;
  }
  const Grid grid{dim3(unsigned(parts.count), unsigned(n_tokens)), dim3(kBlock), 0, stream};
  const Scratch<Partial> partials(n_tokens * parts.count, stream);
  launch(reduce_parts_kernel<kVec>, grid, partials.data(), x, vocab_size, parts.size);
  launch(normalise_parts_kernel<kVec>, grid, out, x, partials.data(), vocab_size,
         parts.size);
}

}  // namespace

void softmax(DeviceView<float, 2> out, DeviceView<const float, 2> x, Stream stream) {
  check_softmax(out.shape, x.shape);
  if (x.size() == 0) return;
  const bool packs = x.shape[1] % 4 == 0 && all_aligned(out.data, x.data);
  (packs ? run<4> : run<1>)(out.data, x.data, x.shape[0], int(x.shape[1]), stream);
}

}  // namespace lab::LAB_GPU
