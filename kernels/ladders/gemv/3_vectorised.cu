#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(128)
    vectorised(float* y, const float4* x, const float4* w, int N, int K4) {
  const int n = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
  if (n >= N) return;
  float sum = 0;
  for (int k = lane; k < K4; k += 32) {
    const float4 a = x[k], b = w[n * K4 + k];
    sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  sum = warp_sum(sum);
  if (lane == 0) y[n] = sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(vectorised, {dim3(tiles(N, 4)), dim3(32, 4), 0, stream}, o.y.data,
         reinterpret_cast<const float4*>(o.x.data),
         reinterpret_cast<const float4*>(o.w.data), N, K / 4);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.N * (s.K / 128);  // 512 bytes a request
  return {.global_load = {.requests = steps * 2, .units = steps * (16 + 16)},
          .global_store = {.requests = s.N, .units = s.N}};
}
// [endregion]

}  // namespace

Rung gemv_vectorised() {
  return {.name = "vectorised",
          .file = "gemv/3_vectorised.cu",
          .idea =
              "16 bytes a lane: the same bytes with a quarter of the requests, and four "
              "times as many of them under way, which is what hides the memory's latency.",
          .run = run,
          .predict = predict,
          .multiple_k = 4};
}

}  // namespace lab::LAB_GPU
