#include "ladders/gemm/tensor_tile.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
/// Starts the copy of a tile, past the registers, and does not wait for it.
__device__ void start_load(Tile& to, const __half* rows, int row0, int n_rows, int k0,
                           int K) {
  const int p = threadIdx.x % 4, k = k0 + p * 8;
  for (int first = 0; first < kTile; first += 64) {
    const int r = first + threadIdx.x / 4;
    const bool inside = row0 + r < n_rows && k < K;
    cp_async_16(to.piece(r, p), inside ? &rows[(row0 + r) * K + k] : rows, inside);
  }
}

__global__ void __launch_bounds__(256)
    double_buffer(float* y, const __half* x, const __half* w, int T, int N, int K) {
  __shared__ __align__(16) Stage stages[2];
  const int warp = threadIdx.x / 32, row = warp / 4 * 64, column = warp % 4 * 32;
  const int t0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile;
  const auto fetch = [&](int buffer, int k0) {
    if (k0 < K) {
      start_load(stages[buffer].x, x, t0, T, k0, K);
      start_load(stages[buffer].w, w, n0, N, k0, K);
    }
    cp_async_commit();  // a group for each step, empty after the last
  };
  Sums sum = {};
  fetch(0, 0);
  for (int k0 = 0, now = 0; k0 < K; k0 += kStep, now ^= 1) {
    fetch(now ^ 1, k0 + kStep);
    cp_async_wait<1>();  // for this step's group; the next one stays on its way
    __syncthreads();
    multiply(sum, stages[now], row, column);
    __syncthreads();  // all have read this buffer: the next turn may write it
  }
  store(y, sum, t0 + row, n0 + column, T, N);
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(double_buffer, {dim3(tiles(N, kTile), tiles(T, kTile)), dim3(256), 0, stream},
         o.y.data, cuda_pointer(o.x16), cuda_pointer(o.w16), T, N, K);
}

// [region prediction]
Traffic predict(Size s) { return predict_tensor_tile(s); }
// [endregion]

}  // namespace

Rung gemm_double_buffer() {
  return {
      .name = "double buffer",
      .file = "gemm/8_double_buffer.cu",
      .idea =
          "cp.async copies the next tiles while the tensor cores work on these, and no "
          "register holds them on the way. The traffic is that of the rung before; what "
          "changes is that nobody waits for it.",
      .run = run,
      .predict = predict,
      .multiple_n = 2,
      .multiple_k = 8,
      .bytes = 2};
}

}  // namespace lab::LAB_GPU
