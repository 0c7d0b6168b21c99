#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(256)
    naive(float* y, const float* x, const float* w, int T, int N, int K) {
  const int t = blockIdx.x * 32 + threadIdx.x, n = blockIdx.y * 8 + threadIdx.y;
  if (t >= T || n >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += x[t * K + k] * w[n * K + k];
  y[t * N + n] = sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(naive, {dim3(tiles(T, 32), tiles(N, 8)), dim3(32, 8), 0, stream}, o.y.data,
         o.x.data, o.w.data, T, N, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto warps = s.T / 32 * s.N;                         // 32 tokens, one column of y
  return {.global_load = {.requests = warps * s.K * 2,       // x and w
                          .units = warps * s.K * (32 + 1)},  // 32 rows of x, one w
          .global_store = {.requests = warps, .units = warps * 32}};
}
// [endregion]

}  // namespace

Rung gemm_naive() {
  return {
      .name = "naive",
      .file = "gemm/1_naive.cu",
      .idea =
          "One thread for each y[t, n]; the lanes of a warp are 32 tokens. At every k "
          "they read one element each of 32 rows of x: 32 sectors of 32 bytes, of which "
          "4 bytes are used. All of them want the same element of w: one sector.",
      .run = run,
      .predict = predict};
}

}  // namespace lab::LAB_GPU
