/// @file
/// Attention of many queries on CUDA cores: tiles of queries and keys in shared memory, all
/// arithmetic in f32, softmax online, so that no row of scores is ever stored. Tiles beyond
/// the diagonal are skipped.
/// @par Source Milakov and Gimelshein 2018, arXiv:1805.02867 (online softmax); Dao 2023,
///      arXiv:2307.08691 (FlashAttention-2)
#pragma once

#include "cuda/attention_common.cuh"

namespace lab::LAB_GPU {
namespace {

/// A block's tile: kDim is the head's size rounded up, kPerThread the rows of each thread,
/// kKeys the keys at a time. A warp has whole rows, so that softmax stays inside of it: its
/// lanes are four (rows) by eight (keys, or dimensions of the result).
template <int kDim, int kPerThread, int kKeys>
struct TiledShape {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  static constexpr int kWarpRows = 4 * kPerThread;
  static constexpr int kRows = kWarps * kWarpRows;
  static constexpr int kThreadKeys = kKeys / 8;
  static constexpr int kThreadDims = kDim / 8;
  // Odd in float4s: lanes that read one dimension of neighbouring rows use all banks.
  static constexpr int kPitch = kDim + 4;
  // Eight lanes write neighbouring keys of four neighbouring rows: 8 r + c are all banks.
  static constexpr int kWeightPitch = kKeys + 8;
  static constexpr int kQueryFloats = kRows * kPitch;
  static constexpr int kKeyFloats = kKeys * kPitch;
  static constexpr int kWeightFloats = kRows * kWeightPitch;
  /// Queries; keys or values, which take turns; weights.
  static constexpr std::size_t kSharedBytes =
      sizeof(float) * (kQueryFloats + kKeyFloats + kWeightFloats);
};

/// A tile of keys or values on its way from global memory, through registers, to shared
/// memory: fetch() starts the reads, store() needs their result.
template <class KV, int kDim, int kKeys, int kThreads>
struct TileOnTheWay {
  static constexpr int kPer = kPerVector<KV>, kRowVectors = kDim / kPer;
  static constexpr int kVectors = kKeys * kRowVectors / kThreads;
  static_assert(kKeys * kRowVectors % kThreads == 0, "all threads have as many vectors");
  uint4 raw[kVectors];

  /// Rows [first, first + kKeys); zeros from `end` and from `head_dim` on.
  __device__ __forceinline__ void fetch(const KvRows<KV>& rows, int first, int end,
                                        int head_dim) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int x = i * kThreads + threadIdx.x;
      const int key = first + x / kRowVectors, d = x % kRowVectors * kPer;
      raw[i] = make_uint4(0, 0, 0, 0);
      if (key < end && d < head_dim) raw[i] = load_vector(rows[key] + d);
    }
  }
  __device__ __forceinline__ void store(float* tile, int pitch) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int x = i * kThreads + threadIdx.x, column = x % kRowVectors;
      float* to = tile + x / kRowVectors * pitch + column * kPer;
      float v[kPer];
      unpack<KV>(v, raw[i]);
      if constexpr (kPer == 4) {
        store_float4(to, make_float4(v[0], v[1], v[2], v[3]));
      } else {
        // Four of eight neighbouring lanes begin with their upper half, so that the eight
        // use all banks.
        const int upper = column & 4;
        store_float4(to + upper, upper ? make_float4(v[4], v[5], v[6], v[7])
                                       : make_float4(v[0], v[1], v[2], v[3]));
        store_float4(to + 4 - upper, upper ? make_float4(v[0], v[1], v[2], v[3])
                                           : make_float4(v[4], v[5], v[6], v[7]));
      }
    }
  }
};

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  sum += a.x * b.x;
  sum += a.y * b.y;
  sum += a.z * b.z;
  return sum + a.w * b.w;
}
__device__ __forceinline__ float component(float4 v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/// scores[i][j]: the thread's i-th row and j-th key.
template <class Shape, int kI, int kJ>
__device__ __forceinline__ void tile_scores(float (&scores)[kI][kJ], const float* queries,
                                            const float* keys) {
#pragma unroll
  for (int i = 0; i < kI; ++i)
#pragma unroll
    for (int j = 0; j < kJ; ++j) scores[i][j] = 0;
#pragma unroll 1
  for (int d = 0; d < Shape::kPitch - 4; d += 4) {
    float4 q[kI];
#pragma unroll
    for (int i = 0; i < kI; ++i) q[i] = load_float4(queries + 4 * i * Shape::kPitch + d);
#pragma unroll
    for (int j = 0; j < kJ; ++j) {
      const float4 k = load_float4(keys + 8 * j * Shape::kPitch + d);
#pragma unroll
      for (int i = 0; i < kI; ++i) scores[i][j] = dot(q[i], k, scores[i][j]);
    }
  }
}

/// mixed[i][c] += weights * values over the keys of the tile. With kMasked, a value that a
/// row does not see is skipped, for it may be NaN: `seen` is how many keys each row sees.
template <class Shape, bool kMasked, int kI, int kC>
__device__ __forceinline__ void tile_mix(float (&mixed)[kI][kC], const float* weights,
                                         const float* values, const int (&seen)[kI],
                                         int n_keys) {
#pragma unroll 1
  for (int key = 0; key < n_keys; key += 4) {
    float4 w[kI];
#pragma unroll
    for (int i = 0; i < kI; ++i)
      w[i] = load_float4(weights + 4 * i * Shape::kWeightPitch + key);
#pragma unroll
    for (int s = 0; s < 4; ++s)
#pragma unroll
      for (int c = 0; c < kC; c += 4) {
        const float4 v = load_float4(values + (key + s) * Shape::kPitch + 8 * c);
#pragma unroll
        for (int i = 0; i < kI; ++i) {
          if (kMasked && key + s >= seen[i]) continue;
          const float p = component(w[i], s);
          mixed[i][c] += p * v.x;
          mixed[i][c + 1] += p * v.y;
          mixed[i][c + 2] += p * v.z;
          mixed[i][c + 3] += p * v.w;
        }
      }
  }
}

/// The online softmax of the rows of a thread.
template <int kI>
struct RunningSoftmax {
  float largest[kI], sum[kI];  // the sum over this thread's keys only

  /// Turns scores into weights relative to the largest score so far; what was summed under
  /// the previous one is to be multiplied by factor[i].
  template <int kJ>
  __device__ __forceinline__ void update(float (&scores)[kI][kJ], float (&factor)[kI]) {
#pragma unroll
    for (int i = 0; i < kI; ++i) {
      float m = largest[i];
#pragma unroll
      for (int j = 0; j < kJ; ++j) m = fmaxf(m, scores[i][j]);
#pragma unroll
      for (int step = 4; step >= 1; step /= 2)
        m = fmaxf(m, __shfl_xor_sync(kAllLanes, m, step));
      // While every score is -infinity there is no largest, and the weights are zero.
      const float base = m == -INFINITY ? 0.0f : m;
      factor[i] = exp2f(largest[i] - base);
      largest[i] = m;
      sum[i] *= factor[i];
#pragma unroll
      for (int j = 0; j < kJ; ++j) {
        scores[i][j] = exp2f(scores[i][j] - base);
        sum[i] += scores[i][j];
      }
    }
  }
};

/// The queries of the block's rows, times `factor`; zeros beyond the head's size.
template <class Shape>
__device__ __forceinline__ void load_queries(float* queries, const float* q,
                                             const AttentionShape& shape,
                                             const AttentionSequence& sequence, int kv_head,
                                             int first_row, float factor) {
  constexpr int kRowVectors = (Shape::kPitch - 4) / 4;
  for (int x = threadIdx.x; x < Shape::kRows * kRowVectors; x += Shape::kThreads) {
    const int r = x / kRowVectors, d = x % kRowVectors * 4;
    const int row = min(first_row + r, sequence.n_rows() - 1);
    float4 v{};
    if (d < shape.head_dim)
      v = load_float4(q + sequence.vector_of(kv_head, row) * shape.head_dim + d);
    store_float4(queries + r * Shape::kPitch + d,
                 make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor));
  }
}

}  // namespace

/// Blocks that an SM must have room for. Vectors of f32 on the way take twice the
/// registers, and the results of large heads as many.
template <class KV, int kDim>
constexpr int kTiledBlocks = std::is_same_v<KV, float> || kDim > 96 ? 2 : 3;

/// Block x takes kRows rows of kv head blockIdx.y of sequence blockIdx.z; the last rows,
/// which see the most keys, come first. Of several sequences, those with few queries are
/// attention_split's.
template <class KV, int kDim, int kPerThread, int kKeys>
static __global__ void __launch_bounds__(TiledShape<kDim, kPerThread, kKeys>::kThreads,
                                         kTiledBlocks<KV, kDim>)
    attention_tiled(float* __restrict__ out, const float* __restrict__ q,
                    const KV* __restrict__ k, const KV* __restrict__ v,
                    AttentionBatch batch, float scale, AttentionShape shape) {
  using Shape = TiledShape<kDim, kPerThread, kKeys>;
  extern __shared__ __align__(16) unsigned char dynamic_smem[];
  float* queries = reinterpret_cast<float*>(dynamic_smem);
  float* tile = queries + Shape::kQueryFloats;
  float* weights = tile + Shape::kKeyFloats;
  const int lane = threadIdx.x % 32, column = lane % 8;
  const int my_row = threadIdx.x / 32 * Shape::kWarpRows + lane / 8;  // and every fourth
  const int kv_head = blockIdx.y;
  const int first_row = int(gridDim.x - 1 - blockIdx.x) * Shape::kRows;
  const AttentionSequence sequence(batch, shape, blockIdx.z);
  if (sequence.n_tokens <= kDecodeTokens || first_row >= sequence.n_rows()) return;
  const KvRows<KV> keys(k, batch, shape, sequence, kv_head);
  const KvRows<KV> values(v, batch, shape, sequence, kv_head);

  const int last_row = min(first_row + Shape::kRows, sequence.n_rows()) - 1;
  // Keys [0, all_see) are seen by every row of the block, keys from `end` on by none.
  const int all_see = sequence.last_key(first_row) + 1;
  const int end = sequence.last_key(last_row) + 1;
  int visible[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i)
    visible[i] = sequence.last_key(min(first_row + my_row + 4 * i, last_row)) + 1;

  load_queries<Shape>(queries, q, shape, sequence, kv_head, first_row, scale * kLog2E);
  RunningSoftmax<kPerThread> softmax;
  float mixed[kPerThread][Shape::kThreadDims];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    softmax.largest[i] = -INFINITY;
    softmax.sum[i] = 0;
#pragma unroll
    for (int c = 0; c < Shape::kThreadDims; ++c) mixed[i][c] = 0;
  }
  TileOnTheWay<KV, kDim, kKeys, Shape::kThreads> next;
  next.fetch(keys, 0, end, shape.head_dim);
  for (int first = 0; first < end; first += kKeys) {
    next.store(tile, Shape::kPitch);
    next.fetch(values, first, end, shape.head_dim);
    __syncthreads();
    float scores[kPerThread][Shape::kThreadKeys];
    tile_scores<Shape>(scores, queries + my_row * Shape::kPitch,
                       tile + column * Shape::kPitch);
    __syncthreads();  // all have read the keys
    next.store(tile, Shape::kPitch);
    next.fetch(keys, first + kKeys, end, shape.head_dim);

    const bool masked = first + kKeys > all_see;
    if (masked)
#pragma unroll
      for (int i = 0; i < kPerThread; ++i)
#pragma unroll
        for (int j = 0; j < Shape::kThreadKeys; ++j)
          if (first + column + 8 * j >= visible[i]) scores[i][j] = -INFINITY;
    float factor[kPerThread];
    softmax.update(scores, factor);
    int seen[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      seen[i] = visible[i] - first;
#pragma unroll
      for (int c = 0; c < Shape::kThreadDims; ++c) mixed[i][c] *= factor[i];
#pragma unroll
      for (int j = 0; j < Shape::kThreadKeys; ++j)
        weights[(my_row + 4 * i) * Shape::kWeightPitch + column + 8 * j] = scores[i][j];
    }
    __syncthreads();  // the values are there, and the warp's weights
    const float* my_weights = weights + my_row * Shape::kWeightPitch;
    if (masked)
      tile_mix<Shape, true>(mixed, my_weights, tile + 4 * column, seen,
                            min(kKeys, end - first));
    else
      tile_mix<Shape, false>(mixed, my_weights, tile + 4 * column, seen, kKeys);
    __syncthreads();  // all have read the values
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    float sum = softmax.sum[i];
#pragma unroll
    for (int step = 4; step >= 1; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    const int row = first_row + my_row + 4 * i;
    if (row > last_row) continue;
    float* to = out + sequence.vector_of(kv_head, row) * shape.head_dim;
#pragma unroll
    for (int c = 0; c < Shape::kThreadDims; c += 4) {
      const int d = 8 * c + 4 * column;
      if (d < shape.head_dim)
        store_float4(to + d, make_float4(mixed[i][c] / sum, mixed[i][c + 1] / sum,
                                         mixed[i][c + 2] / sum, mixed[i][c + 3] / sum));
    }
  }
}

}  // namespace lab::LAB_GPU
