/// @file
/// The kernel of the rungs "shared tiles" and "padding", which differ in one number.
#pragma once

#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
template <int kPitch>  // floats from one row of a tile to the next
__global__ void __launch_bounds__(1024)
    tiled(float* y, const float* x, const float* w, int T, int N, int K) {
  __shared__ float xs[32][kPitch], ws[32][kPitch];
  const int row = threadIdx.y, lane = threadIdx.x;
  const int t0 = blockIdx.y * 32, n0 = blockIdx.x * 32;
  float sum = 0;
  for (int k0 = 0; k0 < K; k0 += 32) {
    const int k = k0 + lane;
    xs[row][lane] = t0 + row < T && k < K ? x[(t0 + row) * K + k] : 0;
    ws[row][lane] = n0 + row < N && k < K ? w[(n0 + row) * K + k] : 0;
    __syncthreads();  // the tiles are written before anyone reads them
    for (int i = 0; i < 32; ++i) sum += xs[row][i] * ws[lane][i];
    __syncthreads();  // and read by all before the next ones come
  }
  if (t0 + row < T && n0 + lane < N) y[(t0 + row) * N + n0 + lane] = sum;
}
// [endregion]

template <int kPitch>
void run_tiled(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(tiled<kPitch>, {dim3(tiles(N, 32), tiles(T, 32)), dim3(32, 32), 0, stream},
         o.y.data, o.x.data, o.w.data, T, N, K);
}

}  // namespace
}  // namespace lab::LAB_GPU
