#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(256)
    coalesced(float* y, const float* x, const float* w, int N, int K) {
  const int t = blockIdx.y, n = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
  if (n >= N) return;
  float sum = 0;
  for (int k = lane; k < K; k += 32) sum += x[t * K + k] * w[n * K + k];
  sum = warp_sum(sum);
  if (lane == 0) y[t * N + n] = sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(coalesced, {dim3(tiles(N, 8), T), dim3(32, 8), 0, stream}, o.y.data, o.x.data,
         o.w.data, N, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto warps = s.T * s.N, steps = s.K / 32;  // 32 products a step
  return {.global_load = {.requests = warps * steps * 2,
                          .units = warps * steps * (4 + 4)},  // 128 bytes of x, of w
          .global_store = {.requests = warps, .units = warps}};
}
// [endregion]

}  // namespace

Rung gemm_coalesced() {
  return {
      .name = "coalesced",
      .file = "gemm/2_coalesced.cu",
      .idea =
          "One warp for each y[t, n]; its lanes share the row, and their sums are added "
          "with shuffles. Neighbouring lanes now read neighbouring addresses: a request "
          "is 4 sectors, and all their bytes are used.",
      .run = run,
      .predict = predict};
}

}  // namespace lab::LAB_GPU
