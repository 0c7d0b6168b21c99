#include "ladders/block.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(kBlock)
    vectorised(float4* y, const float4* x, const float4* w, int K4) {
  x += blockIdx.x * K4, y += blockIdx.x * K4;
  float sum = 0;
  for (int k = threadIdx.x; k < K4; k += kBlock) {
    const float4 v = x[k];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  sum = block_reduce(sum, Add{});
  const float s = rsqrtf(sum / (4 * K4) + ladders::kEps);
  for (int k = threadIdx.x; k < K4; k += kBlock) {
    const float4 v = x[k], g = w[k];
    y[k] = make_float4(v.x * s * g.x, v.y * s * g.y, v.z * s * g.z, v.w * s * g.w);
  }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(vectorised, {dim3(T), dim3(kBlock), 0, stream},
         reinterpret_cast<float4*>(o.y.data), reinterpret_cast<const float4*>(o.x.data),
         reinterpret_cast<const float4*>(o.w.data), K / 4);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 128), warps = s.T * kWarps;
  return {.global_load = {.requests = steps * 3, .units = steps * 3 * 16},
          .global_store = {.requests = steps, .units = steps * 16},
          .shared_load = {.requests = warps, .units = warps},
          .shared_store = {.requests = warps, .units = warps}};
}
// [endregion]

}  // namespace

Rung rms_norm_vectorised() {
  return {.name = "vectorised",
          .file = "rms_norm/5_vectorised.cu",
          .idea = "16 bytes a lane: the same sectors with a quarter of the requests.",
          .run = run,
          .predict = predict,
          .multiple_k = 4};
}

}  // namespace lab::LAB_GPU
