/// @file
/// What a warp does with tiles of 16-bit rows in shared memory when tensor cores do the
/// products: shared by the rungs "tensor cores", "swizzle" and "double buffer".
/// @par Source Dao 2023, arXiv:2307.08691, section 3; PTX ISA, "Matrix fragments for
///      mma.m16n8k16" and "ldmatrix"
#pragma once

#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kDim = 64;       // head_dim
constexpr int kTile = 64;      // rows of a block, and keys of a step
constexpr int kThreads = 128;  // 4 warps of 16 rows

// [region kernel]
/// 64 rows of 128 bytes, eight pieces of 16 bytes each: a row is as long as the 32 banks.
template <bool kSwizzle>
struct Tile {
  __half rows[kTile][kDim];

  /// Piece `p` of row `r`.
  __device__ __half* piece(int r, int p) {
    return &rows[r][(kSwizzle ? p ^ (r % 8) : p) * 8];
  }
};

__device__ std::uint32_t pair(float a, float b) {
  const __half2 halves = __floats2half2_rn(a, b);
  std::uint32_t bits;
  memcpy(&bits, &halves, sizeof bits);
  return bits;
}

/// A warp's 16 rows of q and what they have seen so far. Of every fragment a lane holds
/// elements of two rows, lane / 4 and lane / 4 + 8: `i / 2` picks one in what follows.
struct Rows {
  std::uint32_t q[4][4];   // 16 x 64: four fragments A
  float mixed[8][4] = {};  // 16 x 64: eight fragments C
  float max[2] = {-INFINITY, -INFINITY}, sum[2] = {};

  template <class T>
  __device__ void read(T& tile) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
    for (int d = 0; d < 4; ++d)
      ldmatrix_x4(q[d], tile.piece(row + lane % 16, 2 * d + lane / 16));
  }

  /// Takes in the keys n0 .. n0 + 63 and their values; row i of the two sees keys up to
  /// last[i].
  template <class T>
  __device__ void attend(T& k, T& v, int n0, const int (&last)[2]) {
    float s[8][4];  // 16 x 64 scores
    const int key = n0 + int(threadIdx.x) % 4 * 2;
    score(s, k);
    for (int n = 0; n < 8; ++n)
      for (int i = 0; i < 4; ++i) {
        const bool seen = key + 8 * n + i % 2 <= last[i / 2];
        s[n][i] = seen ? s[n][i] * 0.125f : -INFINITY;  // 1 / sqrt(kDim)
      }
    soften(s);
    mix(s, v);
  }

  template <class T>
  __device__ void score(float (&s)[8][4], T& k) {
    const int lane = threadIdx.x % 32;
    for (int n = 0; n < 8; ++n) {
      for (float& dot : s[n]) dot = 0;
      for (int d = 0; d < 4; d += 2) {  // 8 keys, 32 dimensions
        std::uint32_t b[4];
        ldmatrix_x4(b, k.piece(8 * n + lane % 8, 2 * d + lane / 8));
        const std::uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
        mma_m16n8k16(s[n], q[d], first, s[n]);
        mma_m16n8k16(s[n], q[d + 1], second, s[n]);
      }
    }
  }

  /// Scores become weights; the four lanes of a row agree on its maximum.
  __device__ void soften(float (&s)[8][4]) {
    for (int r = 0; r < 2; ++r) {
      float m = max[r];
      for (int n = 0; n < 8; ++n) m = fmaxf(m, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
      for (int d = 1; d < 4; d *= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
      const float shrink = expf(max[r] - m);  // 0 at first; every row sees key 0
      max[r] = m;
      sum[r] *= shrink;
      for (int n = 0; n < 8; ++n)
        for (int i = 2 * r; i < 2 * r + 2; ++i) {
          s[n][i] = expf(s[n][i] - m);
          sum[r] += s[n][i];
          mixed[n][i] *= shrink;
        }
    }
  }

  /// What a lane holds of the scores of 16 keys is what it has to hold of A.
  template <class T>
  __device__ void mix(const float (&s)[8][4], T& v) {
    const int lane = threadIdx.x % 32;
    for (int j = 0; j < 4; ++j) {  // 16 keys
      const auto& x = s[2 * j];
      const auto& y = s[2 * j + 1];
      const std::uint32_t a[4] = {pair(x[0], x[1]), pair(x[2], x[3]), pair(y[0], y[1]),
                                  pair(y[2], y[3])};
      for (int d = 0; d < 8; d += 2) {  // 16 dimensions
        std::uint32_t b[4];
        ldmatrix_x4_trans(b, v.piece(16 * j + lane % 16, d + lane / 16));
        const std::uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
        mma_m16n8k16(mixed[d], a, first, mixed[d]);
        mma_m16n8k16(mixed[d + 1], a, second, mixed[d + 1]);
      }
    }
  }

  /// Writes y from row t on: two neighbouring results of each of two rows at a time.
  __device__ void store(float* y, int t, int T) {
    const int lane = threadIdx.x % 32;
    for (int r = 0; r < 2; ++r) {
      float total = sum[r];
      for (int d = 1; d < 4; d *= 2) total += __shfl_xor_sync(0xffffffffu, total, d);
      const int row = t + lane / 4 + 8 * r;
      for (int d = 0; d < 8; ++d) {
        const float2 two = {mixed[d][2 * r] / total, mixed[d][2 * r + 1] / total};
        if (row < T)
          *reinterpret_cast<float2*>(&y[row * kDim + 8 * d + lane % 4 * 2]) = two;
      }
    }
  }
};

/// The last key that each of a lane's two rows sees; `position` is that of the warp's
/// first row.
struct Last {
  int key[2];
  __device__ Last(int position, int N) {
    for (int r = 0; r < 2; ++r)
      key[r] = min(position + int(threadIdx.x % 32) / 4 + 8 * r, N - 1);
  }
};
// [endregion]

// [region prediction]
/// For all three: 4 warps a block; `conflicts` wavefronts where one would do.
inline Traffic predict_tensor_tile(Size s, int conflicts) {
  const auto blocks = s.T / kTile, before = (s.N - s.T) / kTile;
  const auto steps =
      blocks * before + blocks * (blocks + 1) / 2;  // the mask skips the rest
  const auto warps = blocks * 4, warp_steps = steps * 4;
  const auto copies = warps * 4 + warp_steps * 8;  // 512 bytes of q; of k and v
  const auto reads = warps * 4 + warp_steps * 32;  // ldmatrix of 512 bytes
  return {.global_load = {.requests = copies, .units = copies * 16},
          .global_store = {.requests = warps * 16, .units = warps * 16 * 8},
          .shared_load = {.requests = reads, .units = reads * 4 * conflicts},
          .shared_store = {.requests = copies, .units = copies * 4}};
}
// [endregion]

}  // namespace
}  // namespace lab::LAB_GPU
