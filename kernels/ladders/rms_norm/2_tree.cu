#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
__global__ void __launch_bounds__(kBlock)
    tree(float* y, const float* x, const float* w, int K) {
  __shared__ float sums[kBlock];
  const int thread = threadIdx.x;
  x += blockIdx.x * K, y += blockIdx.x * K;
  float sum = 0;
  for (int k = thread; k < K; k += kBlock) {
    const float v = x[k];
    sum += v * v;
  }
  sums[thread] = sum;
  for (int d = 1; d < kBlock; d *= 2) {  // neighbours first
    __syncthreads();
    const int i = 2 * d * thread;
    if (i < kBlock) sums[i] += sums[i + d];
  }
  __syncthreads();
  const float scale = rsqrtf(sums[0] / K + ladders::kEps);
  for (int k = thread; k < K; k += kBlock) y[k] = x[k] * scale * w[k];
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(tree, {dim3(T), dim3(kBlock), 0, stream}, o.y.data, o.x.data, o.w.data, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 32);  // of a warp
  std::int64_t additions = 0, wavefronts = 0;
  for (int d = 1; d < kBlock; d *= 2) {
    const int threads = kBlock / (2 * d), lanes = threads < 32 ? threads : 32;
    const int warps = threads / lanes, banks = 2 * d < 32 ? 32 / (2 * d) : 1;
    additions += warps;
    wavefronts += warps * (lanes > banks ? lanes / banks : 1);  // a stride of 2 d words
  }
  return {.global_load = {.requests = steps * 3, .units = steps * 3 * 4},
          .global_store = {.requests = steps, .units = steps * 4},
          .shared_load = {.requests = s.T * (2 * additions + kWarps),
                          .units = s.T * (2 * wavefronts + kWarps)},
          .shared_store = {.requests = s.T * (additions + kWarps),
                           .units = s.T * (wavefronts + kWarps)}};
}
// [endregion]

}  // namespace

Rung rms_norm_tree() {
  return {.name = "block and tree",
          .file = "rms_norm/2_tree.cu",
          .idea =
              "One block for each row: lanes read neighbours, and each sector is used in "
              "full. The threads' sums meet in a tree in shared memory, neighbours first: "
              "strides of 2, 4, 8 words, which share ever fewer banks.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
