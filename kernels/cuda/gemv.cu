// Few tokens: y = x W^T at the speed of memory.
//
// A warp owns four rows and walks along them, each lane with a piece of sixteen bytes of
// each (32 columns of 4-bit codes). The activations of a piece are read once from shared
// memory for the four rows.
//
// How much must be under way? By Little's law bandwidth times latency: 3.35 TB/s * 600 ns =
// 2 MB on an H100, 15 KB on each of its 132 multiprocessors (A100: 7 KB on each of 108). A
// warp asks for 4 rows * 32 lanes * 16 B = 2 KB and, one piece ahead of its arithmetic,
// keeps that under way all the time; the 16 warps that fit (128 registers a thread) ask for
// 32 KB.
//
// How much may a weight cost? At 4.5 bits memory delivers 27 weights a cycle to each
// multiprocessor of an H100 (3.35 TB/s, 1.7 GHz), which issues 128 operations in it: at
// most 4.8 for each weight. A byte permutation, a subtraction and a multiply-add are 3;
// shifts, masks and reading x, which four rows share, are 0.6.
#include <algorithm>

#include "cuda/linear_kernels.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kRows = 4;  // of a warp
constexpr unsigned kAllLanes = 0xffffffffu;

/// What a lane reads of a row at a time.
template <class F>
struct Piece {  // a quantised block
  static constexpr bool kHalf = std::is_same_v<typename F::Codes, Bytes>;
  static constexpr int kCols = kHalf ? 16 : 32;
  static constexpr int kGroups = kHalf ? 1 : F::Scales::kPerBlock;  // that have a scale
  static constexpr bool kScaled = true, kMinima = F::Scales::kMinima;
  typename F::Codes codes[kCols / 16];
  typename F::Scales scales;

  static __device__ Piece load(const Planes& p, unsigned i) {
    Piece piece;
    if constexpr (kHalf) {
      piece.codes[0] = F::Codes::load_half(p, i / 2, int(i % 2));
      piece.scales = F::Scales::load(p, i / 2);
    } else {
      F::Codes::load(piece.codes, p, i);
      piece.scales = F::Scales::load(p, i);
    }
    return piece;
  }
  /// Columns 4j to 4j + 3, before scale and minimum.
  __device__ void quad(int j, float (&w)[4]) const {
    const std::uint32_t q = codes[j / 4].quad(j % 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = quad_value<F::kZero>(q, i);
  }
  __device__ float2 scale(int group) const { return scales.value(group); }
};

template <class T>
struct Piece<Floats<T>> {
  static constexpr int kCols = Floats<T>::kPerVector, kGroups = 1;
  static constexpr bool kScaled = false, kMinima = false;
  uint4 vector;

  static __device__ Piece load(const Planes& p, unsigned i) {
    return {LAB_GPU::load<uint4>(p.plane[kCodes], i)};
  }
  __device__ void quad(int j, float (&w)[4]) const { Floats<T>::quad(vector, j, w); }
  __device__ float2 scale(int) const { return {1.0f, 0.0f}; }
};

/// Where four activations lie in shared memory. Lanes read pieces of 1, 2, 4 or 8 quads
/// apart: with the bits exchanged, eight neighbouring lanes always meet all banks.
__device__ __forceinline__ int swizzled(int quad) { return quad ^ ((quad >> 3) & 7); }

struct Arguments {
  Planes weights;
  float* y;
  const float* x;
  std::int64_t rows, cols;
  int n_tokens;
  int splits;     // warps that share the columns of four rows
  int tile_cols;  // columns that are in shared memory at a time
  bool aligned;   // x can be read in float4
};

/// Activations [first, first + tile_cols) of every token to shared memory; what does not
/// exist is zero.
template <int kTokens>
__device__ void stage(float4* tile, const Arguments& a, std::int64_t first) {
  const int quads = a.tile_cols / 4;
  for (int t = 0; t < kTokens; ++t)
    for (int q = int(threadIdx.x); q < quads; q += kThreads) {
      const std::int64_t cols = t < a.n_tokens ? a.cols : 0;
      const float4 v = load_quad(a.x + t * a.cols, first + 4 * q, cols, a.aligned);
      tile[t * quads + swizzled(q)] = v;
    }
}

__device__ __forceinline__ float dot(const float (&w)[4], float4 x, float sum) {
  sum = w[0] * x.x + sum;
  sum = w[1] * x.y + sum;
  sum = w[2] * x.z + sum;
  return w[3] * x.w + sum;
}

/// sums[r * kTokens + t] += piece r times token t; the piece begins at quad `first`.
template <class P, int kTokens>
__device__ __forceinline__ void multiply(float (&sums)[kRows * kTokens],
                                         const P (&piece)[kRows], const float4* tile,
                                         int first, int quads) {
  constexpr int kQuads = P::kCols / 4 / P::kGroups;
#pragma unroll
  for (int g = 0; g < P::kGroups; ++g) {
    float part[kRows * kTokens] = {}, total[kTokens] = {};
#pragma unroll
    for (int j = g * kQuads; j < (g + 1) * kQuads; ++j) {
      float4 x[kTokens];
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        x[t] = tile[t * quads + swizzled(first + j)];
        if constexpr (P::kMinima) total[t] += (x[t].x + x[t].y) + (x[t].z + x[t].w);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float w[4];
        piece[r].quad(j, w);
#pragma unroll
        for (int t = 0; t < kTokens; ++t)
          if constexpr (P::kScaled)
            part[r * kTokens + t] = dot(w, x[t], part[r * kTokens + t]);
          else
            sums[r * kTokens + t] = dot(w, x[t], sums[r * kTokens + t]);
      }
    }
    if constexpr (P::kScaled) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float2 s = piece[r].scale(g);
#pragma unroll
        for (int t = 0; t < kTokens; ++t) {
          float& sum = sums[r * kTokens + t];
          sum = s.x * part[r * kTokens + t] + sum;
          if constexpr (P::kMinima) sum = sum - s.y * total[t];
        }
      }
    }
  }
}

/// The sums over a warp of N values: value lane / (32 / N) in each lane. Halving what is
/// exchanged at each step takes N + log2(32 / N) - 1 shuffles, not 5 N.
template <int N, int kOffset = 16>
__device__ __forceinline__ float warp_sums(const float (&v)[N]) {
  constexpr int kKept = N > 1 ? N / 2 : 1;
  const bool upper = threadIdx.x & kOffset;
  float kept[kKept];
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const float low = v[i], high = v[N > 1 ? i + N / 2 : i];
    kept[i] =
        (upper ? high : low) + __shfl_xor_sync(kAllLanes, upper ? low : high, kOffset);
  }
  if constexpr (kOffset > 1)
    return warp_sums<kKept, kOffset / 2>(kept);
  else
    return kept[0];
}

}  // namespace

template <class F, int kTokens>
__global__ void __launch_bounds__(kThreads, 2) gemv_kernel(Arguments a) {
  using P = Piece<F>;
  constexpr int kSums = kRows * kTokens;
  extern __shared__ __align__(16) unsigned char dynamic_smem[];
  float4* tile = reinterpret_cast<float4*>(dynamic_smem);  // (kTokens, tile_cols / 4)
  __shared__ float warp_results[kWarps][kSums];

  const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
  const int block_rows = kWarps / a.splits * kRows;
  const std::int64_t block_row = std::int64_t(blockIdx.x) * block_rows;
  const int pieces = int(a.weights.blocks) * (int(kPlaneBlock) / P::kCols);
  unsigned row_piece[kRows];  // rows past the last repeat it, and are not stored
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = block_row + warp / a.splits * kRows + r;
    row_piece[r] = unsigned((row < a.rows ? row : a.rows - 1) * pieces);
  }
  int i = warp % a.splits * 32 + lane;
  P next[kRows];
  const auto ask = [&] {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (i < pieces) next[r] = P::load(a.weights, row_piece[r] + unsigned(i));
  };

  // The next pieces are asked for before the current ones are used, and the first ones
  // before the activations: their latencies overlap. With several tokens there is so much
  // to do with a piece that other warps fill the wait, and the registers are needed.
  constexpr bool kAhead = kTokens == 1 || !P::kScaled;
  float sums[kSums] = {};
  ask();
  const int tile_pieces = a.tile_cols / P::kCols;
  for (int first = 0; first < pieces; first += tile_pieces) {
    if (first > 0) __syncthreads();  // everyone has used the last tile
    stage<kTokens>(tile, a, std::int64_t(first) * P::kCols);
    __syncthreads();  // the tile is there
    const int end = min(first + tile_pieces, pieces);
    while (i < end) {
      P piece[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) piece[r] = next[r];
      const int quad = (i - first) * (P::kCols / 4);
      i += 32 * a.splits;
      if constexpr (kAhead) ask();
      multiply<P, kTokens>(sums, piece, tile, quad, a.tile_cols / 4);
      if constexpr (!kAhead) ask();
    }
  }

  const float sum = warp_sums(sums);
  if (lane % (32 / kSums) == 0) warp_results[warp][lane / (32 / kSums)] = sum;
  __syncthreads();  // the parts of all warps are there
  const int row = int(threadIdx.x) % block_rows, t = int(threadIdx.x) / block_rows;
  if (t < a.n_tokens && block_row + row < a.rows) {
    float y = 0;
    for (int s = 0; s < a.splits; ++s)
      y += warp_results[row / kRows * a.splits + s][row % kRows * kTokens + t];
    a.y[t * a.rows + block_row + row] = y;
  }
}

namespace {

/// Warps that share four rows: more when there are few rows, so that the GPU is full, but
/// not more than have a piece. A function of the shape alone: the order of sums, and so the
/// result, is the same on every GPU.
int splits_of(const Product& p, std::int64_t pieces) {
  int splits = p.rows >= 4096 ? 1 : p.rows >= 2048 ? 2 : 4;
  while (splits > 1 && pieces <= 32 * (splits / 2)) splits /= 2;
  return splits;
}

template <class F, int kTokens>
void launch_gemv(const Product& p, std::int64_t first_token, Stream stream) {
  constexpr int kTileCols = kTokens == 1 ? 8192 : 4096;
  constexpr int kDefaultLimit = 48 * 1024;
  Arguments a{p.weights,
              p.y + first_token * p.rows,
              p.x + first_token * p.cols,
              p.rows,
              p.cols,
              int(std::min<std::int64_t>(p.n_tokens - first_token, kTokens)),
              0,
              0,
              false};
  a.splits = splits_of(p, p.weights.blocks * (kPlaneBlock / Piece<F>::kCols));
  a.tile_cols = int(std::min<std::int64_t>(kTileCols, p.weights.blocks * kPlaneBlock));
  a.aligned = can_load_quads(p);
  const std::size_t smem = std::size_t(a.tile_cols) * kTokens * sizeof(float);
  if (smem > kDefaultLimit)
    check_cuda(cudaFuncSetAttribute(gemv_kernel<F, kTokens>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    int(kTileCols * kTokens * sizeof(float))),
               "shared memory of linear");
  const auto blocks = unsigned(ceil_div(p.rows, kWarps / a.splits * kRows));
  launch(gemv_kernel<F, kTokens>, {dim3(blocks), dim3(kThreads), smem, stream}, a);
}

}  // namespace

void gemv(const Product& p, Stream stream) {
  with_format(p.dtype, [&](auto format) {
    using F = decltype(format);
    for (std::int64_t t = 0; t < p.n_tokens; t += kGemvTokens) {
      const std::int64_t n = p.n_tokens - t;
      n == 1   ? launch_gemv<F, 1>(p, t, stream)
      : n == 2 ? launch_gemv<F, 2>(p, t, stream)
               : launch_gemv<F, kGemvTokens>(p, t, stream);
    }
  });
}

}  // namespace lab::LAB_GPU
