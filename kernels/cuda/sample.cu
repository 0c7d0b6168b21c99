#include "lab/kernels/sample.hpp"

#include "cuda/reduce.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kBlock = 1024, kWarps = kBlock / 32;
static_assert(kWarps == 32, "each lane has the sums of one warp");
constexpr unsigned kAll = 0xffffffffu;
using Units = unsigned long long;

/// Stands for the last positive index of what holds an element that is no probability.
constexpr int kRefused = 0x7fffffff;

template <int kVec>
__device__ __forceinline__ Units units_of(const Pack<kVec>& p) {
  Units sum = 0;
#pragma unroll
  for (int j = 0; j < kVec; ++j) sum += probability_units(p.at[j]);
  return sum;
}

/// Lane l gets the sum of lanes 0 to l.
__device__ __forceinline__ Units inclusive_scan(Units v) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Units before = __shfl_up_sync(kAll, v, distance);
    if (lane >= distance) v += before;
  }
  return v;
}

/// What a warp finds in its segment of a row: the units, and the last positive index; -1 if
/// there is none.
struct Segment {
  Units units;
  int last;
};
template <int kVec>
__device__ __forceinline__ Segment summarise(const float* row, int begin, int end) {
  const int lane = threadIdx.x % 32;
  Units units = 0;
  int last = -1;
#pragma unroll 4
  for (int i = begin + lane * kVec; i < end; i += 32 * kVec) {
    const Pack<kVec> p = load_pack<kVec>(row + i);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      const float v = p.at[j];
      last = max(last, !is_probability(v) ? kRefused : v > 0 ? i + j : -1);
    }
    units += units_of(p);
  }
  return {warp_reduce(units, Sum()), warp_reduce(last, Max())};
}

/// The first index of [begin, end) at which the sum, `before` at the segment's begin,
/// exceeds the target: called by the one warp in whose segment it does.
template <int kVec>
__device__ __forceinline__ int crossing(const float* row, int begin, int end, Units before,
                                        Units target) {
  const int lane = threadIdx.x % 32;
  for (int first = begin;; first += 32 * kVec) {
    const int i = first + lane * kVec;
    Pack<kVec> p = {};
    if (i < end) p = load_pack<kVec>(row + i);
    const Units mine = units_of(p), upto = before + inclusive_scan(mine);
    const unsigned beyond = __ballot_sync(kAll, upto > target);
    if (beyond == 0) {
      before = __shfl_sync(kAll, upto, 31);
      continue;
    }
    // The first lane beyond the target looks at its elements one by one.
    int at = i;
    Units sum = upto - mine;
#pragma unroll
    for (int j = 0; j < kVec - 1; ++j) {
      sum += probability_units(p.at[j]);
      at += sum <= target;
    }
    return __shfl_sync(kAll, at, __ffs(int(beyond)) - 1);
  }
}

/// A block draws for one row. Each warp sums a segment; then the warp whose segment holds
/// the target reads it again, which it finds in a cache, and looks for the place.
template <int kVec>
__global__ void __launch_bounds__(kBlock)
    sample_kernel(std::int32_t* __restrict__ out, const float* __restrict__ p,
                  const float* __restrict__ u, int vocab_size, int segment_size) {
  __shared__ Units units_of_warp[kWarps];
  __shared__ int last_of_warp[kWarps];
  const std::int64_t t = blockIdx.x;
  const float* row = p + t * vocab_size;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int begin = min(warp * segment_size, vocab_size);
  const int end = min(begin + segment_size, vocab_size);

  const Segment mine = summarise<kVec>(row, begin, end);
  if (lane == 0) {
    units_of_warp[warp] = mine.units;
    last_of_warp[warp] = mine.last;
  }
  __syncthreads();

  // Every warp works out all sums, and so knows by itself whether it is the one.
  const Units units = units_of_warp[lane];
  const int last = warp_reduce(last_of_warp[lane], Max());
  const Units upto = inclusive_scan(units);
  const float draw = u[t];
  const bool refused = last == kRefused || last < 0 || !(draw >= 0 && draw < 1);
  const Units target = refused ? 0 : probability_units(draw);
  const unsigned beyond = __ballot_sync(kAll, upto > target);
  if (refused || beyond == 0) {  // beyond == 0: rounding left the row's sum below u
    if (threadIdx.x == 0) out[t] = refused ? -1 : last;
    return;
  }
  if (warp != __ffs(int(beyond)) - 1) return;
  const Units before = __shfl_sync(kAll, upto - units, warp);
  const int at = crossing<kVec>(row, begin, end, before, target);
  if (lane == 0) out[t] = at;
}

}  // namespace

void sample(DeviceView<std::int32_t, 1> out, DeviceView<const float, 2> p,
            DeviceView<const float, 1> u, Stream stream) {
  check_sample(out.shape, p.shape, u.shape);
  if (p.shape[0] == 0) return;
  const int vocab_size = int(p.shape[1]);
  const bool packs = vocab_size % 4 == 0 && all_aligned(p.data);
  constexpr int kCacheLine = 32;
  const int segment_size = int(ceil_div(vocab_size, kWarps * kCacheLine)) * kCacheLine;
  launch(packs ? sample_kernel<4> : sample_kernel<1>,
         {dim3(unsigned(p.shape[0])), dim3(kBlock), 0, stream}, out.data, p.data, u.data,
         vocab_size, segment_size);
}

}  // namespace lab::LAB_GPU
