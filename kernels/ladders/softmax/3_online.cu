#include "ladders/softmax/online.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(kBlock) online(float* y, const float* x, int K) {
  x += blockIdx.x * K, y += blockIdx.x * K;
  Online seen;
  for (int k = threadIdx.x; k < K; k += kBlock) seen.add(x[k]);
  seen = block_merge(seen);
  for (int k = threadIdx.x; k < K; k += kBlock) y[k] = expf(x[k] - seen.max) / seen.sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(online, {dim3(T), dim3(kBlock), 0, stream}, o.y.data, o.x.data, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 32), warps = s.T * kWarps;
  return {.global_load = {.requests = steps * 2, .units = steps * 2 * 4},
          .global_store = {.requests = steps, .units = steps * 4},
          .shared_load = {.requests = warps * 2, .units = warps * 2},
          .shared_store = {.requests = warps * 2, .units = warps * 2}};
}
// [endregion]

}  // namespace

Rung softmax_online() {
  return {.name = "online",
          .file = "softmax/3_online.cu",
          .idea =
              "Maximum and sum in one pass: when a larger maximum comes, the sum so far is "
              "scaled down to it. Two passes over x, and one reduction with one barrier.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
