#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(128)
    naive(float* y, const float* x, const float* w, int N, int K) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += x[k] * w[n * K + k];
  y[n] = sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(naive, {dim3(tiles(N, 128)), dim3(128), 0, stream}, o.y.data, o.x.data, o.w.data,
         N, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto warps = s.N / 32;
  return {.global_load = {.requests = warps * s.K * 2, .units = warps * s.K * (1 + 32)},
          .global_store = {.requests = warps, .units = warps * 4}};
}
// [endregion]

}  // namespace

Rung gemv_naive() {
  return {.name = "naive",
          .file = "gemv/1_naive.cu",
          .idea =
              "One thread for each row of w. The lanes of a warp walk down 32 rows side by "
              "side, and each request touches 32 sectors for 128 bytes.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
