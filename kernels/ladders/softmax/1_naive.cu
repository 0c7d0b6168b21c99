#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(128) naive(float* y, const float* x, int T, int K) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= T) return;
  x += t * K, y += t * K;
  float largest = -INFINITY, sum = 0;
  for (int k = 0; k < K; ++k) largest = fmaxf(largest, x[k]);
  for (int k = 0; k < K; ++k) sum += expf(x[k] - largest);
  for (int k = 0; k < K; ++k) y[k] = expf(x[k] - largest) / sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(naive, {dim3(tiles(T, 128)), dim3(128), 0, stream}, o.y.data, o.x.data, T, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T / 32 * s.K;  // a warp is 32 rows
  return {.global_load = {.requests = steps * 3, .units = steps * 3 * 32},
          .global_store = {.requests = steps, .units = steps * 32}};
}
// [endregion]

}  // namespace

Rung softmax_naive() {
  return {.name = "naive",
          .file = "softmax/1_naive.cu",
          .idea =
              "One thread for each row, three passes: the maximum, the sum, the quotients. "
              "Each lane is in a row of its own: 32 sectors a request.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
