#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr int kTile = 128,
              kStep = 8;           // a block: kTile x kTile results, kStep columns a step
constexpr int kPitch = kTile + 4;  // so that the transposing stores hit 32 banks

__global__ void __launch_bounds__(256)
    registers(float* y, const float* x, const float* w, int T, int N, int K) {
  __shared__ float xs[kStep][kPitch], ws[kStep][kPitch];  // transposed: (k, row)
  const int thread = threadIdx.x, column = thread % 16, row = thread / 16;
  const int t0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile;
  float sum[8][8] = {};  // of rows row + 16 i and columns column + 16 j
  for (int k0 = 0; k0 < K; k0 += kStep) {
    const int k = thread % kStep;
    for (int first = 0; first < kTile; first += 256 / kStep) {
      const int r = first + thread / kStep;
      xs[k][r] = t0 + r < T && k0 + k < K ? x[(t0 + r) * K + k0 + k] : 0;
      ws[k][r] = n0 + r < N && k0 + k < K ? w[(n0 + r) * K + k0 + k] : 0;
    }
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < kStep; ++i) {
      float a[8], b[8];
      for (int j = 0; j < 8; ++j) a[j] = xs[i][row + 16 * j];
      for (int j = 0; j < 8; ++j) b[j] = ws[i][column + 16 * j];
      for (int m = 0; m < 64; ++m) sum[m / 8][m % 8] += a[m / 8] * b[m % 8];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      const int t = t0 + row + 16 * i, n = n0 + column + 16 * j;
      if (t < T && n < N) y[t * N + n] = sum[i][j];
    }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(registers, {dim3(tiles(N, kTile), tiles(T, kTile)), dim3(256), 0, stream},
         o.y.data, o.x.data, o.w.data, T, N, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto warps = s.T / kTile * (s.N / kTile) * 8, warp_steps = warps * (s.K / kStep);
  return {// 4 rows of 32 bytes a request, 4 requests for each of x and w
          .global_load = {.requests = warp_steps * 8, .units = warp_steps * 8 * 4},
          .global_store = {.requests = warps * 64, .units = warps * 64 * 4},
          // 16 reads for 64 products a thread; no conflicts
          .shared_load = {.requests = warp_steps * kStep * 16,
                          .units = warp_steps * kStep * 16},
          .shared_store = {.requests = warp_steps * 8, .units = warp_steps * 8}};
}
// [endregion]

}  // namespace

Rung gemm_registers() {
  return {
      .name = "register tiles",
      .file = "gemm/5_registers.cu",
      .idea =
          "A thread computes 8 x 8 results in registers: 16 reads of shared memory feed "
          "64 multiply-adds, where the tiles needed 128 reads for as many. The block's "
          "tile grows to 128 x 128, so global memory is read 4 times less, too.",
      .run = run,
      .predict = predict};
}

}  // namespace lab::LAB_GPU
