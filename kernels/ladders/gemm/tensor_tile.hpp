/// @file
/// What a block does with a tile in shared memory when tensor cores do the products: shared
/// by the rungs "tensor cores" and "double buffer".
/// @par Source PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix"
#pragma once

#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kTile = 128,
              kStep = 32;  // a block: kTile x kTile results, kStep columns a step

// [region kernel]
/// A tile of x or of w: rows of 64 bytes, four pieces of 16 bytes each.
struct Tile {
  __half rows[kTile][kStep];  // (row, k)

  /// Piece `p` of row `r` lies at p ^ (r / 2 % 4), so that neither the stores of two whole
  /// rows nor the reads of one piece of eight rows meet in a bank.
  __device__ __half* piece(int r, int p) { return &rows[r][(p ^ (r / 2 % 4)) * 8]; }
};

/// What a block needs for one step.
struct Stage {
  Tile x, w;
};

using Sums = float[4][4][4];  // of a warp's 64 x 32 results: 4 x 4 fragments, 4 a lane

/// Adds the products of a step to the warp's sums; `row` and `column` are the warp's place.
__device__ void multiply(Sums& sum, Stage& stage, int row, int column) {
  const int lane = threadIdx.x % 32;
  for (int k = 0; k < kStep / 8; k += 2) {  // two pieces: 16 columns
    uint32_t a[4][4], b[2][4];
    for (int i = 0; i < 4; ++i)
      ldmatrix_x4(a[i], stage.x.piece(row + 16 * i + lane % 16, k + lane / 16));
    for (int j = 0; j < 2; ++j)
      ldmatrix_x4(b[j], stage.w.piece(column + 16 * j + lane / 16 * 8 + lane % 8,
                                      k + lane / 8 % 2));
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const uint32_t half[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
        mma_m16n8k16(sum[i][j], a[i], half, sum[i][j]);
      }
  }
}

/// A lane holds two neighbouring results of each of 8 rows.
__device__ void store(float* y, const Sums& sum, int row, int column, int T, int N) {
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 4; ++j) {
      const int t = row + 8 * i + lane / 4, n = column + 8 * j + lane % 4 * 2;
      const float2 v = {sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]};
      if (t < T && n < N) *reinterpret_cast<float2*>(&y[t * N + n]) = v;
    }
}
// [endregion]

// [region prediction]
/// For both rungs: 8 warps a block, each 64 x 32 results.
inline Traffic predict_tensor_tile(Size s) {
  const auto warps = s.T / kTile * (s.N / kTile) * 8, steps = s.K / kStep;
  return {// 8 rows of 64 bytes a request
          .global_load = {.requests = warps * steps * 4, .units = warps * steps * 4 * 16},
          .global_store = {.requests = warps * 32, .units = warps * 32 * 8},
          // 6 ldmatrix of 512 bytes for 16 columns
          .shared_load = {.requests = warps * steps * 12, .units = warps * steps * 12 * 4},
          .shared_store = {.requests = warps * steps * 4, .units = warps * steps * 4 * 4}};
}
// [endregion]

}  // namespace
}  // namespace lab::LAB_GPU
