#include "lab/kernels/argmax.hpp"

#include "cuda/reduce.cuh"
#include "cuda/scratch.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kBlock = 512;

/// An element as a number of which the largest is wanted: the value in the upper half,
/// mapped to unsigned integers of the same order, and in the lower half the index, smaller
/// ones larger. NaN is above everything. So the reduction is one maximum, and it does not
/// matter in which order it is taken.
using Key = unsigned long long;
constexpr Key kNan = ~Key(0);
constexpr Key kNone = 0;  // below every element's

__device__ __forceinline__ Key key_of(float value, int index) {
  if (value != value) return kNan;
  const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes 0: they are equal
  const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return Key(ordered) << 32 | ~unsigned(index);
}
__device__ __forceinline__ std::int32_t index_of(Key key) {
  return key == kNan ? -1 : std::int32_t(~unsigned(key));
}

/// Block (part, t) finds the largest key of its part of row t. A row of one part is done.
template <int kVec>
__global__ void __launch_bounds__(kBlock)
    argmax_kernel(std::int32_t* __restrict__ out, Key* __restrict__ keys,
                  const float* __restrict__ x, int vocab_size, int part_size) {
  const std::int64_t t = blockIdx.x;
  const float* row = x + t * vocab_size;
  const int begin = int(blockIdx.y) * part_size, end = min(begin + part_size, vocab_size);
  Key best = kNone;
#pragma unroll 4
  for (int i = begin + int(threadIdx.x) * kVec; i < end; i += kBlock * kVec) {
    const Pack<kVec> v = load_pack<kVec>(row + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) best = max(best, key_of(v.at[j], i + j));
  }
  best = reduce<kBlock>(best, Max(), kNone);
  if (threadIdx.x != 0) return;
  if (gridDim.y == 1)
    out[t] = index_of(best);
  else
    keys[t * gridDim.y + blockIdx.y] = best;
}

/// The largest key of each row's parts, one warp a row.
__global__ void __launch_bounds__(32 * kRowsPerBlock)
    largest_part_kernel(std::int32_t* __restrict__ out, const Key* __restrict__ keys,
                        std::int64_t n_tokens, int parts) {
  const std::int64_t t = row_of_thread<32>();
  if (t >= n_tokens) return;
  const int lane = int(threadIdx.x);
  const Key best = warp_reduce(lane < parts ? keys[t * parts + lane] : kNone, Max());
  if (lane == 0) out[t] = index_of(best);
}

}  // namespace

void argmax(DeviceView<std::int32_t, 1> out, DeviceView<const float, 2> x, Stream stream) {
  check_argmax(out.shape, x.shape);
  const std::int64_t n_tokens = x.shape[0];
  const int vocab_size = int(x.shape[1]);
  if (n_tokens == 0) return;
  const bool packs = vocab_size % 4 == 0 && all_aligned(x.data);
  const RowParts parts(n_tokens, vocab_size);
  const Scratch<Key> keys(parts.count > 1 ? n_tokens * parts.count : 0, stream);
  launch(packs ? argmax_kernel<4> : argmax_kernel<1>,
         {dim3(unsigned(n_tokens), unsigned(parts.count)), dim3(kBlock), 0, stream},
         out.data, keys.data(), x.data, vocab_size, parts.size);
  if (parts.count > 1)
    launch(largest_part_kernel, row_grid<32>(n_tokens, stream), out.data, keys.data(),
           n_tokens, parts.count);
}

}  // namespace lab::LAB_GPU
