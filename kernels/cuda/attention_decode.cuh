/// @file
/// Attention of few queries over a long history ("flash-decoding"). One query per head
/// cannot fill a GPU, so the keys are cut into splits that work at once: attention_split
/// takes one split for all the heads that share its keys, and attention_merge joins the
/// splits of a row. Splits have a fixed size, so the grid does not change a result's bits.
/// @par Source Dao et al. 2023, "Flash-Decoding for long-context inference"
#pragma once

#include "cuda/attention_common.cuh"
#include "cuda/reduce.cuh"

namespace lab::LAB_GPU {
namespace {

constexpr int kSplit = 256;  // keys
constexpr int kDecodeWarps = 8;
constexpr int kWarpKeys = kSplit / kDecodeWarps;
static_assert(kWarpKeys == 32, "each lane keeps the score of one key");

/// Where the splits leave their part of each row: the sum of values weighted by
/// 2^(score - largest), the largest score and the sum of the weights.
struct SplitResults {
  float* mixed;   // (sequences, tokens, H, splits, Dh)
  float2* stats;  // (sequences, tokens, H, splits): largest, sum
};

/// The tokens that SplitResults has room for, of each sequence.
__host__ __device__ inline int split_tokens(const AttentionShape& shape) {
  return shape.max_queries < kDecodeTokens ? shape.max_queries : kDecodeTokens;
}

/// The sum over `kLanes` lanes that are `kStride` apart, of N values each. Instead of all
/// sums, each lane is left with N / kLanes of them (at least one): lane p has those of v[p
/// % N], v[p + kLanes], ... in v[0], v[1], ... Each step halves what is exchanged, so this
/// takes N - 1 shuffles where N butterflies take N log2(kLanes). The order of additions is
/// the same for every N.
template <int kLanes, int kStride, int N>
__device__ __forceinline__ void reduce_scatter(float (&v)[N]) {
  int left = N;
#pragma unroll
  for (int step = 1; step < kLanes; step *= 2) {
    if (left == 1) {
      v[0] += __shfl_xor_sync(kAllLanes, v[0], step * kStride);
      continue;
    }
    left /= 2;
    const bool odd = threadIdx.x / kStride & step;
#pragma unroll
    for (int i = 0; i < N / 2; ++i)
      if (i < left) {  // saves shuffles, no more // mutate: skip
        const float keep = odd ? v[2 * i + 1] : v[2 * i];
        const float send = odd ? v[2 * i] : v[2 * i + 1];
        v[i] = keep + __shfl_xor_sync(kAllLanes, send, step * kStride);
      }
  }
}

/// How the lanes of a warp share the reading of keys: kLanes neighbours read one key, eight
/// elements each (its "fragment"), and 32 / kLanes keys are read at once.
template <class KV, int kLanes, int kRows>
struct DecodeTile {
  static constexpr int kVectors = 8 / kPerVector<KV>;  // of a fragment
  static constexpr int kGroups = 32 / kLanes;          // keys read at once
  // Reads in flight for each lane; eight rows leave registers for half as many.
  static constexpr int kMost = (kRows > 4 ? 4 : 8) / kVectors;
  static constexpr int kUnroll = kMost < kLanes ? kMost : kLanes;
  static constexpr int kPasses = kLanes / kUnroll;
  // Elements of a fragment that a lane has once those of other groups are added.
  static constexpr int kOwn = 8 / kGroups;

  /// The dimension of element e of a lane's fragment: lanes read neighbouring vectors.
  __device__ static int dim(int part, int e) {
    constexpr int kPer = kPerVector<KV>;
    return (e / kPer * kLanes + part) * kPer + e % kPer;
  }
  /// A row of mixed values in shared memory, with a gap after every 32 so that lanes whose
  /// elements are 32 apart use different banks.
  static constexpr int kPitch = kLanes * 8 + kLanes / 4 * kGroups;
  __device__ static int padded(int d) { return d + d / 32 * kGroups; }

  /// The fragments of the keys of one pass; zeros beyond the end.
  __device__ static void load(uint4 (&raw)[kUnroll][kVectors], const KvRows<KV>& rows,
                              int first, int end, int head_dim) {
    const int part = threadIdx.x % kLanes, group = threadIdx.x % 32 / kLanes;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int key = first + u * kGroups + group;
      const KV* row = rows[min(key, end - 1)];  // a select of null would spill on sm_80
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const int d = dim(part, j * kPerVector<KV>);
        raw[u][j] = make_uint4(0, 0, 0, 0);
        if (key < end && d < head_dim) raw[u][j] = load_vector(row + d);
      }
    }
  }
  __device__ __forceinline__ static void unpack_fragment(float (&x)[8],
                                                         const uint4 (&raw)[kVectors]) {
#pragma unroll
    for (int j = 0; j < kVectors; ++j) {
      float part[kPerVector<KV>];
      unpack<KV>(part, raw[j]);
#pragma unroll
      for (int i = 0; i < kPerVector<KV>; ++i) x[j * kPerVector<KV> + i] = part[i];
    }
  }
};

/// The scores of the warp's 32 keys, from `first`: lane l has that of key_of_lane(l).
template <class Tile, class KV, int kLanes, int kRows>
__device__ __forceinline__ void decode_scores(float (&score)[kRows],
                                              const float (&q)[kRows][8],
                                              const KvRows<KV>& keys, int first, int end,
                                              int head_dim) {
#pragma unroll 1  // all passes at once would not fit into registers
  for (int pass = 0; pass < Tile::kPasses; ++pass) {
    uint4 raw[Tile::kUnroll][Tile::kVectors];
    Tile::load(raw, keys, first + pass * Tile::kUnroll * Tile::kGroups, end, head_dim);
    float partial[kRows][Tile::kUnroll];
#pragma unroll
    for (int u = 0; u < Tile::kUnroll; ++u) {
      float x[8];
      Tile::unpack_fragment(x, raw[u]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float sum = q[r][0] * x[0];
#pragma unroll
        for (int e = 1; e < 8; ++e) sum += q[r][e] * x[e];
        partial[r][u] = sum;
      }
    }
    const bool mine = int(threadIdx.x) % kLanes / Tile::kUnroll == pass;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      reduce_scatter<kLanes, 1>(partial[r]);
      if (mine) score[r] = partial[r][0];
    }
  }
}

/// mixed += weights * values over the warp's 32 keys. A value that a row does not see is
/// skipped, for it may be NaN. `raw` has the first pass.
template <class Tile, class KV, int kLanes, int kRows>
__device__ __forceinline__ void decode_mix(float (&mixed)[kRows][8],
                                           uint4 (&raw)[Tile::kUnroll][Tile::kVectors],
                                           const float (&weight)[kRows],
                                           const int (&last)[kRows],
                                           const KvRows<KV>& values, int first, int end,
                                           int head_dim) {
  const int group = threadIdx.x % 32 / kLanes;
#pragma unroll 1  // all passes at once would not fit into registers
  for (int pass = 0; pass < Tile::kPasses; ++pass) {
    if (pass > 0)
      Tile::load(raw, values, first + pass * Tile::kUnroll * Tile::kGroups, end, head_dim);
#pragma unroll
    for (int u = 0; u < Tile::kUnroll; ++u) {
      const int read = pass * Tile::kUnroll + u;
      float x[8];
      Tile::unpack_fragment(x, raw[u]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float w = __shfl_sync(kAllLanes, weight[r], read, kLanes);
        if (first + read * Tile::kGroups + group <= last[r])
#pragma unroll
          for (int e = 0; e < 8; ++e) mixed[r][e] += w * x[e];
      }
    }
  }
}

/// Split blockIdx.x of kv head blockIdx.y, for kRows rows of a sequence: blockIdx.z is
/// (sequence, tile of rows). Sequences with more queries are attention_tiled's.
template <class KV, int kLanes, int kRows>
__global__ void __launch_bounds__(32 * kDecodeWarps, 2)
    attention_split(float* __restrict__ out, SplitResults results,
                    const float* __restrict__ q, const KV* __restrict__ k,
                    const KV* __restrict__ v, AttentionBatch batch, float scale,
                    AttentionShape shape) {
  using Tile = DecodeTile<KV, kLanes, kRows>;
  __shared__ float warp_largest[kRows][kDecodeWarps];
  __shared__ float warp_sums[kRows][kDecodeWarps];
  __shared__ float warp_mixed[kDecodeWarps][kRows][Tile::kPitch];
  const int tiles = int(gridDim.z) / batch.n_sequences, number = int(blockIdx.z) / tiles;
  const AttentionSequence sequence(batch, shape, number);
  const int end = sequence.kv_len, first_row = int(blockIdx.z) % tiles * kRows;
  if (int(blockIdx.x) * kSplit >= end || first_row >= sequence.n_rows() ||
      sequence.n_tokens > kDecodeTokens)
    return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = lane % kLanes;
  const int kv_head = blockIdx.y;
  const int n_rows = min(kRows, sequence.n_rows() - first_row);
  const int first = blockIdx.x * kSplit + warp * kWarpKeys;
  const KvRows<KV> keys(k, batch, shape, sequence, kv_head);
  const KvRows<KV> values(v, batch, shape, sequence, kv_head);

  float fragment[kRows][8];  // of the queries, then of the mixed values
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + min(r, n_rows - 1);
    const float* source = q + sequence.vector_of(kv_head, row) * shape.head_dim;
#pragma unroll
    for (int e = 0; e < 8; e += 4) {
      const int d = Tile::dim(part, e);
      const float4 x = d < shape.head_dim ? load_float4(source + d) : float4{};
      fragment[r][e] = x.x * (scale * kLog2E);
      fragment[r][e + 1] = x.y * (scale * kLog2E);
      fragment[r][e + 2] = x.z * (scale * kLog2E);
      fragment[r][e + 3] = x.w * (scale * kLog2E);
    }
  }
  float weight[kRows] = {};
  decode_scores<Tile, KV, kLanes>(weight, fragment, keys, first, end, shape.head_dim);
  // The values are on their way while the scores become weights.
  uint4 raw[Tile::kUnroll][Tile::kVectors];
  Tile::load(raw, values, first, end, shape.head_dim);
  int last[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    last[r] = min(sequence.last_key(first_row + min(r, n_rows - 1)), end - 1);

  const int my_key = first + part * Tile::kGroups + lane / kLanes;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (my_key > last[r]) weight[r] = -INFINITY;
    const float largest = warp_reduce(weight[r], Max());
    if (lane == 0) warp_largest[r][warp] = largest;
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float largest = warp_largest[r][0];
#pragma unroll
    for (int w = 1; w < kDecodeWarps; ++w) largest = fmaxf(largest, warp_largest[r][w]);
    // Where every score is -infinity, so that there is no largest, the weights are zero.
    weight[r] = exp2f(weight[r] - (largest == -INFINITY ? 0.0f : largest));
    const float sum = warp_reduce(weight[r], Sum());
    if (lane == 0) warp_sums[r][warp] = sum;
#pragma unroll
    for (int e = 0; e < 8; ++e) fragment[r][e] = 0;
  }
  decode_mix<Tile, KV, kLanes>(fragment, raw, weight, last, values, first, end,
                               shape.head_dim);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    reduce_scatter<Tile::kGroups, kLanes>(fragment[r]);
#pragma unroll
    for (int i = 0; i < Tile::kOwn; ++i) {
      const int d = Tile::dim(part, i * Tile::kGroups + lane / kLanes);
      warp_mixed[warp][r][Tile::padded(d)] = fragment[r][i];
    }
  }
  __syncthreads();
  for (int x = threadIdx.x; x < n_rows * shape.head_dim; x += blockDim.x) {
    const int r = x / shape.head_dim, d = x % shape.head_dim;
    float mixed = 0, sum = 0, largest = -INFINITY;
#pragma unroll
    for (int w = 0; w < kDecodeWarps; ++w) {
      mixed += warp_mixed[w][r][Tile::padded(d)];
      sum += warp_sums[r][w];
      largest = fmaxf(largest, warp_largest[r][w]);
    }
    const std::int64_t vector = sequence.vector_of(kv_head, first_row + r);
    if (end <= kSplit) {
      out[vector * shape.head_dim + d] = mixed / sum;
      continue;
    }
    const std::int64_t first_vector = std::int64_t(sequence.first_token) * shape.n_heads;
    const std::int64_t room = std::int64_t(split_tokens(shape)) * shape.n_heads;
    const std::int64_t slot =
        (number * room + vector - first_vector) * gridDim.x + blockIdx.x;
    results.mixed[slot * shape.head_dim + d] = mixed;
    if (d == 0) results.stats[slot] = make_float2(largest, sum);
  }
}

constexpr int kMergeThreads = 256;

/// Head blockIdx.x % H of token blockIdx.x / H of sequence blockIdx.y: 2 kLanes threads
/// share its dimensions, four each, and the others take other splits.
template <int kLanes>
__global__ void __launch_bounds__(kMergeThreads)
    attention_merge(float* __restrict__ out, SplitResults results, AttentionBatch batch,
                    AttentionShape shape) {
  constexpr int kColumns = 2 * kLanes, kParts = kMergeThreads / kColumns;
  __shared__ __align__(16) float part_mixed[kParts][4 * kColumns];
  __shared__ float part_sums[kParts];
  const AttentionSequence sequence(batch, shape, blockIdx.y);
  const int end = sequence.kv_len;
  if (end <= kSplit) return;  // the only split has written the result
  if (int(blockIdx.x) >= sequence.n_tokens * shape.n_heads ||
      sequence.n_tokens > kDecodeTokens)
    return;
  const int n_splits = int(ceil_div(end, kSplit));
  const std::int64_t first_slot = (std::int64_t(blockIdx.y) * gridDim.x + blockIdx.x) *
                                  ceil_div(shape.capacity, kSplit);
  float largest = -INFINITY;
  for (int s = threadIdx.x % 32; s < n_splits; s += 32)
    largest = fmaxf(largest, results.stats[first_slot + s].x);
  largest = warp_reduce(largest, Max());

  const int d = threadIdx.x % kColumns * 4, part = threadIdx.x / kColumns;
  float4 mixed{};
  float sum = 0;
  if (d < shape.head_dim)
    for (int s = part; s < n_splits; s += kParts) {
      const std::int64_t slot = first_slot + s;
      const float2 stats = results.stats[slot];
      const float4 x = load_float4(results.mixed + slot * shape.head_dim + d);
      const float w = exp2f(stats.x - largest);
      mixed = make_float4(mixed.x + w * x.x, mixed.y + w * x.y, mixed.z + w * x.z,
                          mixed.w + w * x.w);
      sum += w * stats.y;
    }
  store_float4(&part_mixed[part][d], mixed);
  if (d == 0) part_sums[part] = sum;
  __syncthreads();
  for (int x = threadIdx.x; x < shape.head_dim; x += kMergeThreads) {
    float total = 0, weights = 0;
#pragma unroll 4
    for (int p = 0; p < kParts; ++p) {
      total += part_mixed[p][x];
      weights += part_sums[p];
    }
    const std::int64_t vector =
        std::int64_t(sequence.first_token) * shape.n_heads + blockIdx.x;
    out[vector * shape.head_dim + x] = total / weights;
  }
}

}  // namespace
}  // namespace lab::LAB_GPU
