#include "ladders/softmax/online.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(kBlock) vectorised(float4* y, const float4* x, int K4) {
  x += blockIdx.x * K4, y += blockIdx.x * K4;
  Online seen;
  for (int k = threadIdx.x; k < K4; k += kBlock) {
    const float4 v = x[k];
    seen.raise(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));  // at most once for four elements
    const float m = seen.origin();
    seen.sum += expf(v.x - m) + expf(v.y - m) + expf(v.z - m) + expf(v.w - m);
  }
  seen = block_merge(seen);
  for (int k = threadIdx.x; k < K4; k += kBlock) {
    const float4 v = x[k];
    y[k] = make_float4(expf(v.x - seen.max) / seen.sum, expf(v.y - seen.max) / seen.sum,
                       expf(v.z - seen.max) / seen.sum, expf(v.w - seen.max) / seen.sum);
  }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(vectorised, {dim3(T), dim3(kBlock), 0, stream},
         reinterpret_cast<float4*>(o.y.data), reinterpret_cast<const float4*>(o.x.data),
         K / 4);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 128), warps = s.T * kWarps;
  return {.global_load = {.requests = steps * 2, .units = steps * 2 * 16},
          .global_store = {.requests = steps, .units = steps * 16},
          .shared_load = {.requests = warps * 2, .units = warps * 2},
          .shared_store = {.requests = warps * 2, .units = warps * 2}};
}
// [endregion]

}  // namespace

Rung softmax_vectorised() {
  return {.name = "vectorised",
          .file = "softmax/4_vectorised.cu",
          .idea =
              "16 bytes a lane: a quarter of the requests. The sum is scaled at most once "
              "for four elements.",
          .run = run,
          .predict = predict,
          .multiple_k = 4};
}

}  // namespace lab::LAB_GPU
