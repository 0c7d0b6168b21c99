/// @file
/// Many tokens: y = x W^T on tensor cores, exact enough for f32.
///
/// A block of threads computes a tile of weight rows times tokens, 32 columns at a time.
/// Weights are decoded once, by the thread that read them, to f16 in shared memory, where
/// the multiplication finds every format alike:
///
///     global     planes ---load--> registers ---decode--> f16 ---ldmatrix--> A (16, 16)
///     global     x as two f16 ----cp.async--------------> f16 ---ldmatrix--> B (16, 8)
///     step k     decode of k + 1 and copy of k + 1 run while k is multiplied
///
/// Why this is exact enough. Codes minus their zero are integers below 256, exact in f16;
/// so are f16 weights, and bf16 weights times the row's power of two (what falls below
/// 2^-24 of f16 is 2^-39 of the row's largest); f32 weights are two f16, hi + lo, as x is.
/// An x is hi + lo, of 11 bits each, after a power of two for the token: 22 bits, and not
/// less than 2^-39 of the token's largest. Tensor cores multiply exactly, and their f32
/// sums, which drop bits, run over 32 columns only: then they meet the block's scale in a
/// register, in f32.
#pragma once

#include "cuda/linear_kernels.hpp"

namespace lab::LAB_GPU {

/// What the kernel reads instead of x. Tokens are rounded up to whole tiles; those that do
/// not exist are zero.
struct SplitActivations {
  const __half *hi, *lo;  // (padded_tokens, cols) each, cols = 32 * blocks
  const float* inverse;   // (padded_tokens) of the token's power of two
  const float* totals;    // (scales of a row, padded_tokens): sums of x, for minima
  std::int64_t padded_tokens;
};

struct GemmArguments {
  Planes weights;
  SplitActivations x;
  std::int64_t rows, n_tokens;
  float* y;
};

namespace {

/// The shape of a tile. Each thread decodes half a block of one row.
template <int kRowsOfTile, int kTokensOfTile, int kRowsOfWarp, int kTokensOfWarp>
struct Tile {
  static constexpr int kRows = kRowsOfTile, kTokens = kTokensOfTile;
  static constexpr int kWarpRows = kRowsOfWarp, kWarpTokens = kTokensOfWarp;
  static constexpr int kThreads = 2 * kRows;
  /// Blocks that a multiprocessor should hold at once, which bounds their registers: one of
  /// the large tile, whose accumulators take half of what there is (0 sets no bound).
  static constexpr int kBlocks = kThreads == 128 ? 4 : 0;
  static_assert(32 * (kRows / kWarpRows) * (kTokens / kWarpTokens) == kThreads);
};
using LargeTile = Tile<128, 128, 64, 32>;
using SmallTile = Tile<64, 32, 16, 32>;

__device__ __forceinline__ std::uint32_t bits_of(__half2 h) {
  std::uint32_t bits;
  memcpy(&bits, &h, sizeof bits);
  return bits;
}

/// 16-byte chunk `chunk` (of 4) of row `row` in a tile of 32 f16 columns. Eight rows of one
/// chunk, which ldmatrix reads at once, lie in different banks, and so do eight
/// neighbouring chunks, which are written at once.
__device__ __forceinline__ int chunk_offset(int row, int chunk) {
  return 64 * row + 16 * (chunk ^ ((row >> 1) & 3));
}

/// Sixteen columns of a row: as read, and decoded to f16.
template <class F>
struct WeightPart {
  static constexpr int kParts = 1;
  static constexpr int kGroups = F::Scales::kPerBlock;
  static constexpr bool kScaled = true, kMinima = F::Scales::kMinima;
  static constexpr bool kRowFactor = false;
  typename F::Codes codes;
  typename F::Scales scales;

  __device__ void load(const Planes& p, std::int64_t block, int half) {
    codes = F::Codes::load_half(p, block, half);
    scales = F::Scales::load(p, block);
  }
  /// The byte c is the low byte of the f16 1024 + c.
  __device__ void decode(int, std::uint32_t (&out)[8]) const {
    const __half2 zero = __float2half2_rn(float(1024 + F::kZero));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t quad = codes.quad(j);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t biased = __byte_perm(quad, 0x64646464u, i ? 0x4342 : 0x4140);
        __half2 pair;
        memcpy(&pair, &biased, sizeof pair);
        out[2 * j + i] = bits_of(__hsub2(pair, zero));
      }
    }
  }
};

template <class T>
struct WeightPart<Floats<T>> {
  static constexpr int kParts = sizeof(T) == 4 ? 2 : 1, kGroups = 1;
  static constexpr bool kScaled = false, kMinima = false;
  static constexpr bool kRowFactor = !std::is_same_v<T, __half>;
  static constexpr int kVectors = sizeof(T);  // of 16 bytes in 16 columns
  uint4 vector[kVectors];
  float factor;

  __device__ void load(const Planes& p, std::int64_t block, int half) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i)
      vector[i] = LAB_GPU::load<uint4>(p.plane[kCodes], (2 * block + half) * kVectors + i);
    if constexpr (kRowFactor)
      factor = LAB_GPU::load<float>(p.plane[kSuper], block / p.blocks);
  }
  /// @param part  0: rounded to f16; 1: what that left
  __device__ void decode(int part, std::uint32_t (&out)[8]) const {
    constexpr int kQuads = 4 / kVectors;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float w[4];
      Floats<T>::quad(vector[j / kQuads], j % kQuads, w);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float a = w[2 * i], b = w[2 * i + 1];
        if constexpr (kRowFactor) a *= factor, b *= factor;
        __half2 pair = __floats2half2_rn(a, b);
        if (part == 1) {
          const float2 rounded = __half22float2(pair);
          pair = __floats2half2_rn(a - rounded.x, b - rounded.y);
        }
        out[2 * j + i] = bits_of(pair);
      }
    }
  }
};

/// What shared memory holds of one step, in bytes from its beginning.
template <class W, class T>
struct Stage {
  static constexpr int kWeights = 0;                                    // W::kParts tiles
  static constexpr int kTokens = kWeights + W::kParts * T::kRows * 64;  // hi and lo
  static constexpr int kScales = kTokens + 2 * T::kTokens * 64;         // (groups, rows)
  // Neighbouring threads write two groups: 16 banks apart.
  static constexpr int kGroupRows = W::kGroups == 1 ? T::kRows : T::kRows + 16;
  static constexpr int kScaleBytes = W::kScaled ? 4 * W::kGroups * kGroupRows : 0;
  static constexpr int kMinima = kScales + kScaleBytes;  // (groups, rows)
  static constexpr int kTotals = kMinima + (W::kMinima ? kScaleBytes : 0);
  static constexpr int kBytes =
      kTotals + (W::kMinima ? 4 * W::kGroups * T::kTokens : 0);  // (groups, tokens)
};

/// Decodes what a thread has read into the stage.
template <class W, class T>
__device__ __forceinline__ void store_weights(unsigned char* stage, const W& w) {
  using S = Stage<W, T>;
  const int row = int(threadIdx.x) / 2, half = int(threadIdx.x) % 2;
#pragma unroll
  for (int part = 0; part < W::kParts; ++part) {
    std::uint32_t h[8];
    w.decode(part, h);
    unsigned char* tile = stage + S::kWeights + part * T::kRows * 64;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<uint4*>(tile + chunk_offset(row, 2 * half + i)) =
          make_uint4(h[4 * i], h[4 * i + 1], h[4 * i + 2], h[4 * i + 3]);
  }
  if constexpr (W::kScaled) {
    if (half < W::kGroups) {
      const float2 s = w.scales.value(half);
      reinterpret_cast<float*>(stage + S::kScales)[half * S::kGroupRows + row] = s.x;
      if constexpr (W::kMinima)
        reinterpret_cast<float*>(stage + S::kMinima)[half * S::kGroupRows + row] = s.y;
    }
  }
}

/// Starts the copy of the activations of a block of columns.
template <class W, class T>
__device__ __forceinline__ void copy_tokens(unsigned char* stage, const SplitActivations& x,
                                            std::int64_t first_token, std::int64_t blocks,
                                            std::int64_t block) {
  using S = Stage<W, T>;
#pragma unroll
  for (int i = int(threadIdx.x); i < 8 * T::kTokens; i += T::kThreads) {
    const int chunk = i % 4, token = i / 4 % T::kTokens, lo = i / 4 / T::kTokens;
    cp_async_16(
        stage + S::kTokens + lo * T::kTokens * 64 + chunk_offset(token, chunk),
        (lo ? x.lo : x.hi) + ((first_token + token) * blocks + block) * 32 + 8 * chunk);
  }
  if constexpr (W::kMinima) {
    constexpr int kPerGroup = T::kTokens / 4;
    for (int i = int(threadIdx.x); i < W::kGroups * kPerGroup; i += T::kThreads) {
      const int group = i / kPerGroup, token = 4 * (i % kPerGroup);
      cp_async_16(
          stage + S::kTotals + 4 * (group * T::kTokens + token),
          x.totals + (block * W::kGroups + group) * x.padded_tokens + first_token + token);
    }
  }
  cp_async_commit();
}

/// What a warp computes: (rows, tokens) in pieces of 16 x 8.
template <class T>
struct Accumulators {
  static constexpr int kM = T::kWarpRows / 16, kN = T::kWarpTokens / 8;
  float sum[kM][kN][4];
};

/// sum += scale * part - min * total, for the 16 rows m of the warp.
template <class W, class T>
__device__ __forceinline__ void add_scaled(float (&sum)[T::kWarpTokens / 8][4],
                                           const float (&part)[T::kWarpTokens / 8][4],
                                           const unsigned char* stage, int group, int row,
                                           int token) {
  using S = Stage<W, T>;
  const auto at = [&](int offset, int i) {
    return reinterpret_cast<const float*>(stage + offset)[i];
  };
  float scale[2] = {1, 1}, min[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if constexpr (W::kScaled)
      scale[i] = at(S::kScales, group * S::kGroupRows + row + 8 * i);
    if constexpr (W::kMinima) min[i] = at(S::kMinima, group * S::kGroupRows + row + 8 * i);
  }
#pragma unroll
  for (int n = 0; n < T::kWarpTokens / 8; ++n) {
    float2 total = {0, 0};
    if constexpr (W::kMinima)
      total = *reinterpret_cast<const float2*>(stage + S::kTotals +
                                               4 * (group * T::kTokens + token + 8 * n));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (W::kScaled)
        sum[n][i] = scale[i / 2] * part[n][i] + sum[n][i];
      else
        sum[n][i] += part[n][i];
      if constexpr (W::kMinima)
        sum[n][i] = sum[n][i] - min[i / 2] * (i % 2 ? total.y : total.x);
    }
  }
}

/// One step: all sums of the warp over 32 columns.
template <class W, class T>
__device__ __forceinline__ void multiply_stage(Accumulators<T>& acc,
                                               const unsigned char* stage, int warp_row,
                                               int warp_token) {
  using S = Stage<W, T>;
  constexpr int kN = Accumulators<T>::kN;
  const int lane = int(threadIdx.x % 32);
  std::uint32_t b[2][kN]
                 [4];  // hi and lo of x: registers 0, 1 of columns 0-15; 2, 3 of 16-31
#pragma unroll
  for (int lo = 0; lo < 2; ++lo)
#pragma unroll
    for (int n = 0; n < kN; ++n)
      ldmatrix_x4(b[lo][n], stage + S::kTokens + lo * T::kTokens * 64 +
                                chunk_offset(warp_token + 8 * n + lane % 8, lane / 8));
#pragma unroll
  for (int m = 0; m < Accumulators<T>::kM; ++m) {
    const int row = warp_row + 16 * m;
    float part[kN][4] = {};
#pragma unroll
    for (int k = 0; k < 2; ++k) {  // columns 0-15, 16-31
#pragma unroll
      for (int p = 0; p < W::kParts; ++p) {
        std::uint32_t a[4];
        ldmatrix_x4(a, stage + S::kWeights + p * T::kRows * 64 +
                           chunk_offset(row + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int lo = 0; lo < 2; ++lo)
#pragma unroll
          for (int n = 0; n < kN; ++n) {
            const std::uint32_t pair[2] = {b[lo][n][2 * k], b[lo][n][2 * k + 1]};
            mma_m16n8k16(part[n], a, pair, part[n]);
          }
      }
      if (W::kGroups == 2 || k == 1) {
        add_scaled<W, T>(acc.sum[m], part, stage, W::kGroups == 2 ? k : 0, row + lane / 4,
                         warp_token + lane % 4 * 2);
#pragma unroll
        for (int n = 0; n < kN; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) part[n][i] = 0;
      }
    }
  }
}

/// Undoes the powers of two, the smaller first so that nothing overflows between, and
/// writes what exists.
template <class W, class T>
__device__ __forceinline__ void store_results(const Accumulators<T>& acc,
                                              const GemmArguments& a, std::int64_t row,
                                              std::int64_t token) {
#pragma unroll
  for (int m = 0; m < Accumulators<T>::kM; ++m)
#pragma unroll
    for (int n = 0; n < Accumulators<T>::kN; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int64_t r = row + 16 * m + i / 2 * 8, t = token + 8 * n + i % 2;
        if (r >= a.rows || t >= a.n_tokens) continue;
        float y = acc.sum[m][n][i];
        const float inverse = a.x.inverse[t];
        if constexpr (W::kRowFactor) {
          const float weight = 1.0f / load<float>(a.weights.plane[kSuper], r);
          y = y * fminf(inverse, weight) * fmaxf(inverse, weight);
        } else {
          y *= inverse;
        }
        a.y[t * a.rows + r] = y;
      }
}

}  // namespace

template <class F, class T>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks) gemm_kernel(GemmArguments a) {
  using W = WeightPart<F>;
  using S = Stage<W, T>;
  extern __shared__ __align__(16) unsigned char dynamic_smem[];
  const auto stage = [](std::int64_t k) { return dynamic_smem + k % 2 * S::kBytes; };
  const std::int64_t blocks = a.weights.blocks;
  const std::int64_t first_token = std::int64_t(blockIdx.x) * T::kTokens;
  const std::int64_t first_row = std::int64_t(blockIdx.y) * T::kRows;
  // Rows past the last repeat it, and are not stored.
  const std::int64_t my_row = first_row + threadIdx.x / 2;
  const std::int64_t my_block = (my_row < a.rows ? my_row : a.rows - 1) * blocks;
  const int half = int(threadIdx.x % 2), warp = int(threadIdx.x / 32);
  constexpr int kWarpColumns = T::kTokens / T::kWarpTokens;
  const int warp_row = warp / kWarpColumns * T::kWarpRows;
  const int warp_token = warp % kWarpColumns * T::kWarpTokens;

  // A thread reads a few bytes of its row; the rest of a sector it finds in the cache in
  // the next steps.
  Accumulators<T> acc = {};
  W part;
  part.load(a.weights, my_block, half);
  copy_tokens<W, T>(stage(0), a.x, first_token, blocks, 0);
  store_weights<W, T>(stage(0), part);
  if (blocks > 1) part.load(a.weights, my_block + 1, half);
  for (std::int64_t k = 0; k < blocks; ++k) {
    cp_async_wait<0>();
    // Stage k is complete, and everyone has finished with the other one.
    __syncthreads();
    unsigned char* next = stage(k + 1);
    if (k + 1 < blocks) {
      copy_tokens<W, T>(next, a.x, first_token, blocks, k + 1);
      store_weights<W, T>(next, part);
    }
    if (k + 2 < blocks) part.load(a.weights, my_block + k + 2, half);
    multiply_stage<W, T>(acc, stage(k), warp_row, warp_token);
  }
  const int lane = int(threadIdx.x % 32);
  store_results<W, T>(acc, a, first_row + warp_row + lane / 4,
                      first_token + warp_token + lane % 4 * 2);
}

/// Multiplies with the tile that suits the number of tokens.
template <class F, class T>
void launch_gemm(const GemmArguments& a, Stream stream) {
  constexpr std::size_t kSmem = 2 * Stage<WeightPart<F>, T>::kBytes;
  if (kSmem > 48 * 1024)
    check_cuda(
        cudaFuncSetAttribute(gemm_kernel<F, T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(kSmem)),
        "shared memory of linear");
  const dim3 grid(unsigned(a.x.padded_tokens / T::kTokens),
                  unsigned(ceil_div(a.rows, T::kRows)));
  launch(gemm_kernel<F, T>, {grid, dim3(T::kThreads), kSmem, stream}, a);
}

}  // namespace lab::LAB_GPU
