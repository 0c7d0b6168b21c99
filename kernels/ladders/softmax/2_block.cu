#include "ladders/block.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(kBlock) block(float* y, const float* x, int K) {
  x += blockIdx.x * K, y += blockIdx.x * K;
  float largest = -INFINITY, sum = 0;
  for (int k = threadIdx.x; k < K; k += kBlock) largest = fmaxf(largest, x[k]);
  largest = block_reduce(largest, Larger{});
  for (int k = threadIdx.x; k < K; k += kBlock) sum += expf(x[k] - largest);
  sum = block_reduce(sum, Add{});
  for (int k = threadIdx.x; k < K; k += kBlock) y[k] = expf(x[k] - largest) / sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(block, {dim3(T), dim3(kBlock), 0, stream}, o.y.data, o.x.data, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 32), warps = s.T * kWarps;
  return {.global_load = {.requests = steps * 3, .units = steps * 3 * 4},
          .global_store = {.requests = steps, .units = steps * 4},
          .shared_load = {.requests = warps * 2, .units = warps * 2},
          .shared_store = {.requests = warps * 2, .units = warps * 2}};
}
// [endregion]

}  // namespace

Rung softmax_block() {
  return {.name = "block for a row",
          .file = "softmax/2_block.cu",
          .idea =
              "One block for each row: neighbouring lanes read neighbours. Still three "
              "passes over x, and two reductions over the block.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
