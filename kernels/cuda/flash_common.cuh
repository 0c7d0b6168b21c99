/// @file
/// What the flash attention kernels share: the sequences of a ragged (or paged) batch, the
/// keys that a block takes, and where its results go.
#pragma once

#include "cuda/attention_common.cuh"

namespace lab::LAB_GPU {
namespace {

/// log(2): scores are kept in powers of two, lse is in powers of e.
constexpr float kLn2 = 0.693147180559945f;

/// Operands and results of one launch. With splits, out and lse are (splits, T, H, ...)
/// and a split is `split_keys` keys of a sequence, each the work of a block of its own.
template <class KV>
struct FlashArguments {
  float *out, *lse;
  const float* q;
  const KV *k, *v;
  AttentionBatch batch;            // kv_lens and block_tables of a paged batch
  const std::int32_t* key_starts;  // else where each sequence's keys begin
  AttentionShape shape;
  float scale;
  bool causal;
  int n_tokens, n_splits = 1, split_keys = 0;
};

/// A sequence and the part of its keys that this block takes.
struct FlashSequence : AttentionSequence {
  int first_key;   // row of k and v of position 0
  int begin, end;  // of the positions of the split
  bool causal;

  template <class KV>
  __device__ FlashSequence(const FlashArguments<KV>& a, int number, int split)
      : AttentionSequence(a.batch, a.shape, number), first_key(0), causal(a.causal) {
    if (a.key_starts != nullptr) {
      first_key = a.key_starts[number];
      kv_len = a.key_starts[number + 1] - first_key;
    }
    begin = split * a.split_keys;
    end = a.n_splits == 1 ? kv_len : min(kv_len, begin + a.split_keys);
  }
  /// The position behind the last that a row sees in this split.
  __device__ int seen_end(int row) const {
    return causal ? min(end, max(0, last_key(row) + 1)) : end;
  }
};

/// The keys or values of a kv head of a sequence, by position.
template <class KV>
__device__ __forceinline__ KvRows<KV> flash_rows(const KV* data,
                                                 const FlashArguments<KV>& a,
                                                 const FlashSequence& sequence,
                                                 int kv_head) {
  const std::int64_t row = std::int64_t(a.shape.n_kv_heads) * a.shape.head_dim;
  return KvRows<KV>(data + sequence.first_key * row, a.batch, a.shape, sequence, kv_head);
}

/// Where the results of the (T, H) vector `vector` of a split go, in vectors.
template <class KV>
__device__ __forceinline__ std::int64_t flash_slot(const FlashArguments<KV>& a, int split,
                                                   std::int64_t vector) {
  return std::int64_t(split) * a.n_tokens * a.shape.n_heads + vector;
}

/// What `sum` weights relative to 2^largest stand for.
__device__ __forceinline__ float lse_of(float largest, float sum) {
  return sum == 0 ? -INFINITY : largest * kLn2 + logf(sum);
}

}  // namespace

/// Merges the splits of each of the (T, H) vectors, a warp each, in the order of the keys.
/// Those of tokens from *end_token on belong to no sequence, and nothing was computed.
static __global__ void __launch_bounds__(128)
    flash_merge(float* __restrict__ out, float* __restrict__ lse,
                const float* __restrict__ parts, const float* __restrict__ part_lse,
                const std::int32_t* __restrict__ end_token, int n_vectors, int n_heads,
                int head_dim, int n_splits) {
  const int vector = int(blockIdx.x * 4 + threadIdx.x / 32), lane = threadIdx.x % 32;
  if (vector >= n_vectors || vector / n_heads >= *end_token) return;
  float largest = -INFINITY, sum = 0;
  for (int s = 0; s < n_splits; ++s)
    largest = fmaxf(largest, part_lse[std::int64_t(s) * n_vectors + vector]);
  // If every part is empty, exp(-inf - -inf) would be NaN.
  const float base = largest == -INFINITY ? 0.0f : largest;
  for (int s = 0; s < n_splits; ++s)
    sum += expf(part_lse[std::int64_t(s) * n_vectors + vector] - base);
  for (int d = lane; d < head_dim; d += 32) {
    float mixed = 0;
    for (int s = 0; s < n_splits; ++s) {
      const std::int64_t slot = std::int64_t(s) * n_vectors + vector;
      mixed += expf(part_lse[slot] - base) * parts[slot * head_dim + d];
    }
    out[std::int64_t(vector) * head_dim + d] = sum == 0 ? 0.0f : mixed / sum;
  }
  if (lane == 0) lse[vector] = sum == 0 ? -INFINITY : base + logf(sum);
}

}  // namespace lab::LAB_GPU
