#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr int kRows = 4;

/// The products of 8 pairs of f16, summed in f32.
__device__ float dot(uint4 a, uint4 b) {
  __half2 p[4], q[4];  // the same bits
  memcpy(p, &a, sizeof a);
  memcpy(q, &b, sizeof b);
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    const float2 u = __half22float2(p[i]), v = __half22float2(q[i]);
    sum += u.x * v.x + u.y * v.y;
  }
  return sum;
}

__global__ void __launch_bounds__(128)
    half_weights(float* y, const uint4* x, const uint4* w, int N, int K8) {
  const int n0 = (blockIdx.x * 4 + threadIdx.y) * kRows, lane = threadIdx.x;
  float sum[kRows] = {};
  for (int k = lane; k < K8; k += 32) {
    const uint4 a = x[k];
    for (int r = 0; r < kRows; ++r) {
      if (n0 + r >= N) break;
      sum[r] += dot(a, w[(n0 + r) * K8 + k]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const float total = warp_sum(sum[r]);
    if (lane == 0 && n0 + r < N) y[n0 + r] = total;
  }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(half_weights, {dim3(tiles(N, 4 * kRows)), dim3(32, 4), 0, stream}, o.y.data,
         reinterpret_cast<const uint4*>(o.x16.data),
         reinterpret_cast<const uint4*>(o.w16.data), N, K / 8);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.N / kRows * (s.K / 256);
  return {
      .global_load = {.requests = steps * (1 + kRows), .units = steps * 16 * (1 + kRows)},
      .global_store = {.requests = s.N, .units = s.N}};
}
// [endregion]

}  // namespace

Rung gemv_half() {
  return {
      .name = "f16 weights",
      .file = "gemv/5_half.cu",
      .idea =
          "Nothing is left to save but the bytes themselves: weights of 16 bits are half "
          "of them. The sums stay in f32.",
      .run = run,
      .predict = predict,
      .multiple_k = 8,
      .bytes = 2};
}

}  // namespace lab::LAB_GPU
