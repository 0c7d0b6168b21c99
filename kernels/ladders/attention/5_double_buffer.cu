#include "ladders/attention/tensor_tile.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
/// Starts the copy of 64 rows, past the registers, and does not wait for it.
__device__ void start_load(Tile<true>& to, const __half* rows, int first, int end) {
  const int p = threadIdx.x % 8;
  for (int r = threadIdx.x / 8; r < kTile; r += kThreads / 8) {
    const bool inside = first + r < end;
    cp_async_16(to.piece(r, p), inside ? &rows[(first + r) * kDim + p * 8] : rows, inside);
  }
}

// 3 blocks of an SM: for the 4 that shared memory has room for, registers would spill.
__global__ void __launch_bounds__(kThreads, 3)
    double_buffer(float* y, const __half* q, const __half* k, const __half* v, int T,
                  int N) {
  __shared__ __align__(16) Tile<true> qs, ks[2], vs[2];
  const int row = threadIdx.x / 32 * 16;  // of the warp
  const int t0 = blockIdx.x * kTile, position = N - T + t0;
  const int end = min(position + kTile, N);  // keys that some row sees
  const auto fetch = [&](int buffer, int n0) {
    if (n0 < end) {
      start_load(ks[buffer], k, n0, N);
      start_load(vs[buffer], v, n0, N);
    }
    cp_async_commit();  // a group for each step, empty after the last
  };
  start_load(qs, q, t0, T);
  cp_async_commit();
  fetch(0, 0);
  cp_async_wait<1>();  // for q; the first keys stay on their way
  __syncthreads();
  Rows rows;
  rows.read(qs);
  const Last last(position + row, N);
  for (int n0 = 0, now = 0; n0 < end; n0 += kTile, now ^= 1) {
    fetch(now ^ 1, n0 + kTile);
    cp_async_wait<1>();  // for this step's group; the next one stays on its way
    __syncthreads();
    rows.attend(ks[now], vs[now], n0, last.key);
    __syncthreads();  // all have read this buffer: the next turn may write it
  }
  rows.store(y, t0 + row, T);
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(double_buffer, {dim3(tiles(T, kTile)), dim3(kThreads), 0, stream}, o.y.data,
         cuda_pointer(o.x16), cuda_pointer(o.w16), cuda_pointer(o.v16), T, N);
}

// [region prediction]
Traffic predict(Size s) { return predict_tensor_tile(s, 1); }
// [endregion]

}  // namespace

Rung attention_double_buffer() {
  return {
      .name = "double buffer",
      .file = "attention/5_double_buffer.cu",
      .idea =
          "cp.async copies the keys and values of the next step while the tensor cores "
          "work "
          "on these. The traffic is that of the rung before; what changes is that nobody "
          "waits for it, and that two stages take 40 KiB of shared memory where one took "
          "24. This is the core of kernels/cuda/flash_tensor.cuh.",
      .run = run,
      .predict = predict,
      .multiple_k = kDim,
      .longest = kDim,
      .bytes = 2,
      .tolerance = 1e-3};  // weights are rounded to f16
}

}  // namespace lab::LAB_GPU
