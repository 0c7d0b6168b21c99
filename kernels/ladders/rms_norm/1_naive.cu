#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(128)
    naive(float* y, const float* x, const float* w, int T, int K) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= T) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += x[t * K + k] * x[t * K + k];
  const float scale = rsqrtf(sum / K + ladders::kEps);
  for (int k = 0; k < K; ++k) y[t * K + k] = x[t * K + k] * scale * w[k];
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(naive, {dim3(tiles(T, 128)), dim3(128), 0, stream}, o.y.data, o.x.data, o.w.data,
         T, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T / 32 * s.K;  // a warp is 32 rows
  return {.global_load = {.requests = steps * 3, .units = steps * (32 + 32 + 1)},
          .global_store = {.requests = steps, .units = steps * 32}};
}
// [endregion]

}  // namespace

Rung rms_norm_naive() {
  return {
      .name = "naive",
      .file = "rms_norm/1_naive.cu",
      .idea =
          "One thread for each row. The lanes of a warp are in 32 rows, so each request "
          "touches 32 sectors; and with few rows most of the GPU has nothing to do.",
      .run = run,
      .predict = predict};
}

}  // namespace lab::LAB_GPU
