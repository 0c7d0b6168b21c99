#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr int kTile = 128, kStep = 8, kPitch = kTile + 4;

/// Four floats from column k of a row, or zeros.
__device__ float4 load4(const float* rows, int row, int n_rows, int k, int K) {
  if (row >= n_rows || k >= K) return make_float4(0, 0, 0, 0);
  return *reinterpret_cast<const float4*>(&rows[row * K + k]);
}

/// Eight floats of a row of a tile: 4 at `at`, and 4 half a tile further on.
__device__ void read8(float (&to)[8], const float* row, int at) {
  reinterpret_cast<float4*>(to)[0] = *reinterpret_cast<const float4*>(&row[at]);
  reinterpret_cast<float4*>(to)[1] = *reinterpret_cast<const float4*>(&row[at + 64]);
}

__global__ void __launch_bounds__(256)
    vectorised(float* y, const float* x, const float* w, int T, int N, int K) {
  __shared__ __align__(16) float xs[kStep][kPitch], ws[kStep][kPitch];
  const int thread = threadIdx.x, column = thread % 16 * 4, row = thread / 16 * 4;
  const int t0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile;
  const int r = thread / 2, k = thread % 2 * 4;  // what this thread loads
  float sum[8][8] = {};
  for (int k0 = 0; k0 < K; k0 += kStep) {
    const float4 a4 = load4(x, t0 + r, T, k0 + k, K), b4 = load4(w, n0 + r, N, k0 + k, K);
    xs[k][r] = a4.x, xs[k + 1][r] = a4.y, xs[k + 2][r] = a4.z, xs[k + 3][r] = a4.w;
    ws[k][r] = b4.x, ws[k + 1][r] = b4.y, ws[k + 2][r] = b4.z, ws[k + 3][r] = b4.w;
    __syncthreads();
#pragma unroll 4  // all 8 would need more registers than 256 threads can have
    for (int i = 0; i < kStep; ++i) {
      __align__(16) float a[8], b[8];
      read8(a, xs[i], row);
      read8(b, ws[i], column);
      for (int m = 0; m < 64; ++m) sum[m / 8][m % 8] += a[m / 8] * b[m % 8];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; j += 4) {
      const int t = t0 + row + i % 4 + i / 4 * 64, n = n0 + column + j / 4 * 64;
      const float4 v = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
      if (t < T && n < N) *reinterpret_cast<float4*>(&y[t * N + n]) = v;
    }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(vectorised, {dim3(tiles(N, kTile), tiles(T, kTile)), dim3(256), 0, stream},
         o.y.data, o.x.data, o.w.data, T, N, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto warps = s.T / kTile * (s.N / kTile) * 8, warp_steps = warps * (s.K / kStep);
  return {// 16 rows of 32 bytes a request
          .global_load = {.requests = warp_steps * 2, .units = warp_steps * 2 * 16},
          .global_store = {.requests = warps * 16, .units = warps * 16 * 16},
          // 512 bytes a request: 4 wavefronts
          .shared_load = {.requests = warp_steps * kStep * 4,
                          .units = warp_steps * kStep * 4 * 4},
          .shared_store = {.requests = warp_steps * 8, .units = warp_steps * 8}};
}
// [endregion]

}  // namespace

Rung gemm_vectorised() {
  return {
      .name = "vectorised",
      .file = "gemm/6_vectorised.cu",
      .idea =
          "Loads and stores of 128 bits: the same bytes with a quarter of the "
          "instructions. What is left of the instruction stream is mostly multiply-adds.",
      .run = run,
      .predict = predict,
      .multiple_n = 4,
      .multiple_k = 4};
}

}  // namespace lab::LAB_GPU
