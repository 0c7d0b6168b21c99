#include "ladders/block.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(kBlock)
    shuffles(float* y, const float* x, const float* w, int K) {
  x += blockIdx.x * K, y += blockIdx.x * K;
  float sum = 0;
  for (int k = threadIdx.x; k < K; k += kBlock) {
    const float v = x[k];
    sum += v * v;
  }
  sum = block_reduce(sum, Add{});
  const float scale = rsqrtf(sum / K + ladders::kEps);
  for (int k = threadIdx.x; k < K; k += kBlock) y[k] = x[k] * scale * w[k];
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(shuffles, {dim3(T), dim3(kBlock), 0, stream}, o.y.data, o.x.data, o.w.data, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 32), warps = s.T * kWarps;
  return {.global_load = {.requests = steps * 3, .units = steps * 3 * 4},
          .global_store = {.requests = steps, .units = steps * 4},
          .shared_load = {.requests = warps, .units = warps},
          .shared_store = {.requests = warps, .units = warps}};
}
// [endregion]

}  // namespace

Rung rms_norm_shuffles() {
  return {.name = "shuffles",
          .file = "rms_norm/4_shuffles.cu",
          .idea =
              "Lanes exchange registers. Shared memory carries one word for each warp, and "
              "one barrier is left of nine.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
