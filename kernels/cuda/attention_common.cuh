/// @file
/// What the attention kernels share: the order of their rows, and keys and values in
/// sixteen bytes at a time.
#pragma once

#include <type_traits>

#include "cuda/attention_problem.cuh"
#include "cuda/compat.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
/// Scores are kept in powers of two, the exponential that the hardware has.
constexpr float kLog2E = 1.44269504088896f;

/// One sequence. The queries of the G = H / K heads that share a kv head are its "rows":
/// row r is token r / G, head r % G of the group.
struct AttentionSequence {
  int first_token, n_tokens, kv_len, n_heads, group;
  const std::int32_t* block_table;

  __device__ AttentionSequence(const AttentionBatch& batch, const AttentionShape& shape,
                               int number)
      : first_token(0),
        n_tokens(shape.max_queries),
        kv_len(min(batch.kv_lens[number], shape.capacity)),
        n_heads(shape.n_heads),
        group(shape.heads_per_group()),
        block_table(nullptr) {
    if (batch.query_starts != nullptr) {
      first_token = batch.query_starts[number];
      n_tokens = batch.query_starts[number + 1] - first_token;
    }
    if (batch.block_tables != nullptr)
      block_table = batch.block_tables + std::int64_t(number) * batch.max_blocks;
  }
  __device__ int n_rows() const { return n_tokens * group; }
  /// Which of the (T, H) vectors of q and out a row is.
  __device__ std::int64_t vector_of(int kv_head, int row) const {
    return std::int64_t(first_token + row / group) * n_heads + kv_head * group +
           row % group;
  }
  /// The last key that a row sees.
  __device__ int last_key(int row) const { return kv_len - n_tokens + row / group; }
};

/// One kv head's keys or values, by position.
template <class KV>
struct KvRows {
  const KV* head;       // of position 0 of block 0
  std::int64_t stride;  // elements from a position to the next
  const std::int32_t* block_table;
  Divisor block_size;

  __device__ KvRows(const KV* data, const AttentionBatch& batch,
                    const AttentionShape& shape, const AttentionSequence& sequence,
                    int kv_head)
      : head(data + std::int64_t(kv_head) * shape.head_dim),
        stride(std::int64_t(shape.n_kv_heads) * shape.head_dim),
        block_table(sequence.block_table),
        block_size(batch.block_size) {}
  __device__ __forceinline__ const KV* operator[](int position) const {
    std::int64_t row = position;
    if (block_table != nullptr) {
      const int block = block_size.quotient(position);
      row = std::int64_t(block_table[block]) * block_size.value +
            (position - block * block_size.value);
    }
    return head + row * stride;
  }
};

/// Up to this many queries of a sequence, splitting its keys keeps more of a GPU busy than
/// tiles do.
constexpr int kDecodeTokens = 4;

/// Elements in sixteen bytes.
template <class KV>
constexpr int kPerVector = int(16 / sizeof(KV));

__device__ __forceinline__ uint4 load_vector(const void* p) {
  return *static_cast<const uint4*>(p);
}
__device__ __forceinline__ float4 load_float4(const float* p) {
  return *reinterpret_cast<const float4*>(p);
}
__device__ __forceinline__ void store_float4(float* p, float4 v) {
  *reinterpret_cast<float4*>(p) = v;
}

/// The elements of a vector of KV as f32.
template <class KV>
__device__ __forceinline__ void unpack(float (&x)[kPerVector<KV>], uint4 v) {
  const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<KV, float>) {
      x[i] = __int_as_float(int(words[i]));
    } else if constexpr (std::is_same_v<KV, __nv_bfloat16>) {
      x[2 * i] = __int_as_float(int(words[i] << 16));
      x[2 * i + 1] = __int_as_float(int(words[i] & 0xffff0000u));
    } else {
      __half2 pair;
      memcpy(&pair, &words[i], sizeof pair);
      const float2 both = __half22float2(pair);
      x[2 * i] = both.x;
      x[2 * i + 1] = both.y;
    }
  }
}

}  // namespace
}  // namespace lab::LAB_GPU
