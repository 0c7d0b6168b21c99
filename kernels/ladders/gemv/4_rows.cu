#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr int kRows = 4;  // of w, for each warp

__global__ void __launch_bounds__(128)
    rows(float* y, const float4* x, const float4* w, int N, int K4) {
  const int n0 = (blockIdx.x * 4 + threadIdx.y) * kRows, lane = threadIdx.x;
  float sum[kRows] = {};
  for (int k = lane; k < K4; k += 32) {
    const float4 a = x[k];
    for (int r = 0; r < kRows; ++r) {
      if (n0 + r >= N) break;
      const float4 b = w[(n0 + r) * K4 + k];
      sum[r] += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
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
  launch(rows, {dim3(tiles(N, 4 * kRows)), dim3(32, 4), 0, stream}, o.y.data,
         reinterpret_cast<const float4*>(o.x.data),
         reinterpret_cast<const float4*>(o.w.data), N, K / 4);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.N / kRows * (s.K / 128);
  return {
      .global_load = {.requests = steps * (1 + kRows), .units = steps * 16 * (1 + kRows)},
      .global_store = {.requests = s.N, .units = s.N}};
}
// [endregion]

}  // namespace

Rung gemv_rows() {
  return {
      .name = "four rows",
      .file = "gemv/4_rows.cu",
      .idea =
          "A warp takes four rows, and uses each piece of x that it loads four times. w "
          "has to come once in any case; of x a quarter is left.",
      .run = run,
      .predict = predict,
      .multiple_k = 4};
}

}  // namespace lab::LAB_GPU
