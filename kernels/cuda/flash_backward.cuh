/// @file
/// The backward pass of flash attention on CUDA cores, in f32 and without atomics: one
/// kernel keeps a tile of keys and lets the rows pass by (dk, dv), the other keeps rows and
/// lets the keys pass by (dq). Both compute the weights again from lse, so that every sum
/// has one order.
/// @par Source Dao 2023, arXiv:2307.08691, algorithm 2
#pragma once

#include "cuda/flash_common.cuh"

namespace lab::LAB_GPU {
namespace {

/// Operands and results; `delta` is the sum of dout * out of each (T, H) vector.
struct BackwardArguments {
  FlashArguments<float> forward;  // its out and lse are not used
  const float *dout, *lse, *delta;
  float *dq, *dk, *dv;
};

/// Tiles in shared memory for heads of up to kDim. A row's pitch is odd: lanes that read
/// one dimension of neighbouring keys use all banks.
template <int kDim>
struct BackwardShape {
  static constexpr int kThreads = 128, kKeys = 32, kRows = 16;
  static constexpr int kPitch = kDim + 1, kWeightPitch = kKeys + 1;
  static constexpr int kFloats =
      2 * (kKeys + kRows) * kPitch + 2 * kRows * kWeightPitch + 2 * kRows;
  static constexpr std::size_t kSharedBytes = sizeof(float) * kFloats;
};

/// The tiles: keys, values; queries, derivatives by out; weights and slopes of the scores.
template <int kDim>
struct BackwardTiles {
  using Shape = BackwardShape<kDim>;
  float *keys, *values, *queries, *dout, *weights, *slopes, *lse, *delta;

  __device__ explicit BackwardTiles(float* memory)
      : keys(memory),
        values(keys + Shape::kKeys * Shape::kPitch),
        queries(values + Shape::kKeys * Shape::kPitch),
        dout(queries + Shape::kRows * Shape::kPitch),
        weights(dout + Shape::kRows * Shape::kPitch),
        slopes(weights + Shape::kRows * Shape::kWeightPitch),
        lse(slopes + Shape::kRows * Shape::kWeightPitch),
        delta(lse + Shape::kRows) {}

  /// Keys and values from position `first` on; zeros where there is none.
  __device__ void load_keys(const BackwardArguments& a, const FlashSequence& sequence,
                            int kv_head, int first) const {
    const KvRows<float> k = flash_rows(a.forward.k, a.forward, sequence, kv_head);
    const KvRows<float> v = flash_rows(a.forward.v, a.forward, sequence, kv_head);
    for (int i = threadIdx.x; i < Shape::kKeys * kDim; i += Shape::kThreads) {
      const int key = i / kDim, d = i % kDim;
      const bool valid = first + key < sequence.kv_len && d < a.forward.shape.head_dim;
      keys[key * Shape::kPitch + d] = valid ? k[first + key][d] : 0.0f;
      values[key * Shape::kPitch + d] = valid ? v[first + key][d] : 0.0f;
    }
  }
  /// The rows from `first` on, their lse and delta; zeros where there is none.
  __device__ void load_rows(const BackwardArguments& a, const FlashSequence& sequence,
                            int kv_head, int first) const {
    const int dim = a.forward.shape.head_dim;
    for (int i = threadIdx.x; i < Shape::kRows * kDim; i += Shape::kThreads) {
      const int r = i / kDim, d = i % kDim;
      const bool valid = first + r < sequence.n_rows() && d < dim;
      const std::int64_t at = valid ? sequence.vector_of(kv_head, first + r) * dim + d : 0;
      queries[r * Shape::kPitch + d] = valid ? a.forward.q[at] : 0.0f;
      dout[r * Shape::kPitch + d] = valid ? a.dout[at] : 0.0f;
    }
    if (threadIdx.x < Shape::kRows) {
      const int row = first + int(threadIdx.x);
      const bool valid = row < sequence.n_rows();
      const std::int64_t at = valid ? sequence.vector_of(kv_head, row) : 0;
      lse[threadIdx.x] = valid ? a.lse[at] : 0.0f;
      delta[threadIdx.x] = valid ? a.delta[at] : 0.0f;
    }
  }
  /// Weights of the scores of the rows and keys that are loaded, and the derivatives by the
  /// dot products; zero where a row does not see a key.
  __device__ void recompute(const BackwardArguments& a, const FlashSequence& sequence,
                            int first_row, int first_key) const {
    for (int i = threadIdx.x; i < Shape::kRows * Shape::kKeys; i += Shape::kThreads) {
      const int r = i / Shape::kKeys, key = i % Shape::kKeys, row = first_row + r;
      float score = 0, slope = 0;
      for (int d = 0; d < kDim; ++d) {
        score += queries[r * Shape::kPitch + d] * keys[key * Shape::kPitch + d];
        slope += dout[r * Shape::kPitch + d] * values[key * Shape::kPitch + d];
      }
      const bool seen = row < sequence.n_rows() && first_key + key < sequence.seen_end(row);
      const float weight = seen ? expf(a.forward.scale * score - lse[r]) : 0.0f;
      weights[r * Shape::kWeightPitch + key] = weight;
      slopes[r * Shape::kWeightPitch + key] =
          seen ? weight * (slope - delta[r]) * a.forward.scale : 0.0f;
    }
  }
};

}  // namespace

/// delta of the (T, H) vectors, a warp each.
static __global__ void __launch_bounds__(128)
    flash_delta(float* __restrict__ delta, const float* __restrict__ dout,
                const float* __restrict__ out, int n_vectors, int head_dim) {
  const int vector = int(blockIdx.x * 4 + threadIdx.x / 32);
  if (vector >= n_vectors) return;
  float sum = 0;
  for (int d = threadIdx.x % 32; d < head_dim; d += 32) {
    const std::int64_t at = std::int64_t(vector) * head_dim + d;
    sum += dout[at] * out[at];
  }
#pragma unroll
  for (int step = 16; step >= 1; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  if (threadIdx.x % 32 == 0) delta[vector] = sum;
}

/// Block x takes 32 keys of kv head blockIdx.y of sequence blockIdx.z. A thread has every
/// fourth dimension of one key.
template <int kDim>
static __global__ void __launch_bounds__(BackwardShape<kDim>::kThreads)
    flash_backward_keys(BackwardArguments a) {
  using Shape = BackwardShape<kDim>;
  extern __shared__ __align__(16) unsigned char dynamic_smem[];
  const BackwardTiles<kDim> tiles(reinterpret_cast<float*>(dynamic_smem));
  const int kv_head = int(blockIdx.y), first_key = int(blockIdx.x) * Shape::kKeys;
  const FlashSequence sequence(a.forward, int(blockIdx.z), 0);
  if (first_key >= sequence.kv_len) return;
  const int key = int(threadIdx.x) / 4, part = int(threadIdx.x) % 4;
  float dk[kDim / 4] = {}, dv[kDim / 4] = {};
  tiles.load_keys(a, sequence, kv_head, first_key);
  // Rows of earlier tokens do not see the first key, and no other of the tile.
  const int token =
      a.forward.causal ? max(0, first_key - (sequence.kv_len - sequence.n_tokens)) : 0;
  for (int first = token * sequence.group; first < sequence.n_rows();
       first += Shape::kRows) {
    tiles.load_rows(a, sequence, kv_head, first);
    __syncthreads();  // the keys and rows are there
    tiles.recompute(a, sequence, first, first_key);
    __syncthreads();  // the weights are there
    for (int r = 0; r < Shape::kRows; ++r) {
      const float weight = tiles.weights[r * Shape::kWeightPitch + key];
      const float slope = tiles.slopes[r * Shape::kWeightPitch + key];
#pragma unroll
      for (int c = 0; c < kDim / 4; ++c) {
        dv[c] += weight * tiles.dout[r * Shape::kPitch + part + 4 * c];
        dk[c] += slope * tiles.queries[r * Shape::kPitch + part + 4 * c];
      }
    }
    __syncthreads();  // all have read rows and weights
  }
  if (first_key + key >= sequence.kv_len) return;
  const AttentionShape& shape = a.forward.shape;
  const std::int64_t to =
      (std::int64_t(sequence.first_key + first_key + key) * shape.n_kv_heads + kv_head) *
      shape.head_dim;
#pragma unroll
  for (int c = 0; c < kDim / 4; ++c) {
    const int d = part + 4 * c;
    if (d >= shape.head_dim) continue;
    a.dk[to + d] = dk[c];
    a.dv[to + d] = dv[c];
  }
}

/// Block x takes 16 rows of kv head blockIdx.y of sequence blockIdx.z. A thread has every
/// eighth dimension of one row.
template <int kDim>
static __global__ void __launch_bounds__(BackwardShape<kDim>::kThreads)
    flash_backward_queries(BackwardArguments a) {
  using Shape = BackwardShape<kDim>;
  extern __shared__ __align__(16) unsigned char dynamic_smem[];
  const BackwardTiles<kDim> tiles(reinterpret_cast<float*>(dynamic_smem));
  const int kv_head = int(blockIdx.y), first_row = int(blockIdx.x) * Shape::kRows;
  const FlashSequence sequence(a.forward, int(blockIdx.z), 0);
  if (first_row >= sequence.n_rows()) return;
  const int r = int(threadIdx.x) / 8, part = int(threadIdx.x) % 8;
  const int last_row = min(first_row + Shape::kRows, sequence.n_rows()) - 1;
  const int end = sequence.seen_end(last_row);
  float dq[kDim / 8] = {};
  tiles.load_rows(a, sequence, kv_head, first_row);
  for (int first = 0; first < end; first += Shape::kKeys) {
    tiles.load_keys(a, sequence, kv_head, first);
    __syncthreads();  // the keys and rows are there
    tiles.recompute(a, sequence, first_row, first);
    __syncthreads();  // the slopes are there
    for (int key = 0; key < Shape::kKeys; ++key) {
      const float slope = tiles.slopes[r * Shape::kWeightPitch + key];
#pragma unroll
      for (int c = 0; c < kDim / 8; ++c)
        dq[c] += slope * tiles.keys[key * Shape::kPitch + part + 8 * c];
    }
    __syncthreads();  // all have read keys and slopes
  }
  if (first_row + r > last_row) return;
  const int dim = a.forward.shape.head_dim;
  const std::int64_t to = sequence.vector_of(kv_head, first_row + r) * dim;
#pragma unroll
  for (int c = 0; c < kDim / 8; ++c)
    if (part + 8 * c < dim) a.dq[to + part + 8 * c] = dq[c];
}

}  // namespace lab::LAB_GPU
