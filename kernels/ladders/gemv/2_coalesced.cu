#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(128)
    coalesced(float* y, const float* x, const float* w, int N, int K) {
  const int n = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
  if (n >= N) return;
  float sum = 0;
  for (int k = lane; k < K; k += 32) sum += x[k] * w[n * K + k];
  sum = warp_sum(sum);
  if (lane == 0) y[n] = sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(coalesced, {dim3(tiles(N, 4)), dim3(32, 4), 0, stream}, o.y.data, o.x.data,
         o.w.data, N, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.N * (s.K / 32);  // a warp a row, 32 columns a step
  return {.global_load = {.requests = steps * 2, .units = steps * (4 + 4)},
          .global_store = {.requests = s.N, .units = s.N}};
}
// [endregion]

}  // namespace

Rung gemv_coalesced() {
  return {.name = "coalesced",
          .file = "gemv/2_coalesced.cu",
          .idea =
              "One warp for each row: its lanes read neighbouring columns, so that every "
              "byte of every sector is used.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
