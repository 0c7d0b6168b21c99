#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(kBlock)
    halves(float* y, const float* x, const float* w, int K) {
  __shared__ float sums[kBlock];
  const int thread = threadIdx.x;
  x += blockIdx.x * K, y += blockIdx.x * K;
  float sum = 0;
  for (int k = thread; k < K; k += kBlock) {
    const float v = x[k];
    sum += v * v;
  }
  sums[thread] = sum;
  for (int d = kBlock / 2; d > 0; d /= 2) {  // the far half onto the near half
    __syncthreads();
    if (thread < d) sums[thread] += sums[thread + d];
  }
  __syncthreads();
  const float scale = rsqrtf(sums[0] / K + ladders::kEps);
  for (int k = thread; k < K; k += kBlock) y[k] = x[k] * scale * w[k];
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(halves, {dim3(T), dim3(kBlock), 0, stream}, o.y.data, o.x.data, o.w.data, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 32);
  std::int64_t additions = 0;  // of a warp; one wavefront each
  for (int d = kBlock / 2; d > 0; d /= 2) additions += d < 32 ? 1 : d / 32;
  return {.global_load = {.requests = steps * 3, .units = steps * 3 * 4},
          .global_store = {.requests = steps, .units = steps * 4},
          .shared_load = {.requests = s.T * (2 * additions + kWarps),
                          .units = s.T * (2 * additions + kWarps)},
          .shared_store = {.requests = s.T * (additions + kWarps),
                           .units = s.T * (additions + kWarps)}};
}
// [endregion]

}  // namespace

Rung rms_norm_halves() {
  return {
      .name = "no conflicts",
      .file = "rms_norm/3_halves.cu",
      .idea =
          "The same tree in another order: the far half is added to the near half, so "
          "that the active lanes stay neighbours and their words lie in different banks.",
      .run = run,
      .predict = predict};
}

}  // namespace lab::LAB_GPU
