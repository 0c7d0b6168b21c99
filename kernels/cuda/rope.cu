#include "lab/kernels/rope.hpp"

#include "cuda/reduce.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kBlock = 256;

__global__ void __launch_bounds__(kBlock)
    rope_angles_kernel(float* __restrict__ cos, float* __restrict__ sin,
                       const std::int32_t* __restrict__ positions,
                       const float* __restrict__ inv_freq, std::int64_t n, int pairs) {
  const std::int64_t i = std::int64_t(blockIdx.x) * kBlock + threadIdx.x;
  if (i >= n) return;
  const std::int64_t t = i / pairs;
  const float angle = float(positions[t]) * inv_freq[i - t * pairs];
  // Whole turns are taken off in double precision: sincosf would fall back to a slow path
  // through local memory for a large angle, and an f32 remainder would lose its digits.
  const double turns = double(angle) * 0.15915494309189533577;  // 1 / (2 pi)
  float s, c;
  sincospif(float(2 * (turns - rint(turns))), &s, &c);
  cos[i] = c;
  sin[i] = s;
}

__device__ __forceinline__ void rotate(float& first, float& second, float cos, float sin) {
  const float a = first, b = second;
  first = a * cos - b * sin;
  second = a * sin + b * cos;
}

/// A block works on one token: its threads on kPairs pairs of a head each. Heads of
/// interleaved pairs are read two pairs to a pack, because four would leave every other 16
/// bytes of an access to the next one.
template <RopeLayout kLayout, int kPairs>
__global__ void __launch_bounds__(kBlock)
    rope_kernel(float* __restrict__ x, const float* __restrict__ cos,
                const float* __restrict__ sin, int n_heads, int pairs) {
  const std::int64_t t = blockIdx.x;
  const unsigned i = (blockIdx.y * kBlock + threadIdx.x) * kPairs;
  const unsigned head = i / unsigned(pairs), pair = i % unsigned(pairs);
  if (head >= unsigned(n_heads)) return;
  float* row = x + (t * n_heads + head) * 2 * pairs;
  const float* angle_cos = cos + t * pairs + pair;
  const float* angle_sin = sin + t * pairs + pair;
  if constexpr (kPairs == 1) {
    float& first = row[kLayout == RopeLayout::interleaved ? 2 * pair : pair];
    float& second = row[kLayout == RopeLayout::interleaved ? 2 * pair + 1 : pair + pairs];
    rotate(first, second, *angle_cos, *angle_sin);
  } else if constexpr (kLayout == RopeLayout::interleaved) {
    const auto c = load_pack<kPairs>(angle_cos), s = load_pack<kPairs>(angle_sin);
    auto v = load_pack<2 * kPairs>(row + 2 * pair);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) rotate(v.at[2 * j], v.at[2 * j + 1], c.at[j], s.at[j]);
    store_pack(row + 2 * pair, v);
  } else {
    const auto c = load_pack<kPairs>(angle_cos), s = load_pack<kPairs>(angle_sin);
    auto v = load_pack<kPairs>(row + pair), w = load_pack<kPairs>(row + pairs + pair);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) rotate(v.at[j], w.at[j], c.at[j], s.at[j]);
    store_pack(row + pair, v);
    store_pack(row + pairs + pair, w);
  }
}

}  // namespace

void rope_angles(DeviceView<float, 2> cos, DeviceView<float, 2> sin,
                 DeviceView<const std::int32_t, 1> positions,
                 DeviceView<const float, 1> inv_freq, Stream stream) {
  check_rope_angles(cos.shape, sin.shape, positions.shape, inv_freq.shape);
  const std::int64_t n = cos.size();
  if (n == 0) return;
  launch(rope_angles_kernel, {dim3(unsigned(ceil_div(n, kBlock))), dim3(kBlock), 0, stream},
         cos.data, sin.data, positions.data, inv_freq.data, n, int(cos.shape[1]));
}

void rope(DeviceView<float, 3> x, DeviceView<const float, 2> cos,
          DeviceView<const float, 2> sin, RopeLayout layout, Stream stream) {
  check_rope(x.shape, cos.shape, sin.shape);
  if (x.size() == 0) return;
  const std::int64_t n_heads = x.shape[1], pairs = cos.shape[1];
  const auto run = [&](auto kernel, int per_thread) {
    const auto blocks = unsigned(ceil_div(n_heads * pairs, kBlock * per_thread));
    launch(kernel, {dim3(unsigned(x.shape[0]), blocks), dim3(kBlock), 0, stream}, x.data,
           cos.data, sin.data, int(n_heads), int(pairs));
  };
  const bool aligned = all_aligned(x.data, cos.data, sin.data);
  if (layout == RopeLayout::interleaved) {
    if (aligned && pairs % 2 == 0)
      run(rope_kernel<RopeLayout::interleaved, 2>, 2);
    else
      run(rope_kernel<RopeLayout::interleaved, 1>, 1);
  } else {
    if (aligned && pairs % 4 == 0)
      run(rope_kernel<RopeLayout::half_split, 4>, 4);
    else
      run(rope_kernel<RopeLayout::half_split, 1>, 1);
  }
}

}  // namespace lab::LAB_GPU
