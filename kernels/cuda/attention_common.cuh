/// @file
/// What the attention kernels share: the order of their rows, and keys and values in
/// sixteen bytes at a time.
#pragma once

#include <type_traits>

#include "cuda/compat.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
/// Scores are kept in powers of two, the exponential that the hardware has.
constexpr float kLog2E = 1.44269504088896f;

/// One call of attention. The queries of the G = H / K heads that share a kv head are its
/// "rows": row r is token r / G, head r % G of the group.
struct AttentionShape {
  int n_tokens, n_heads, n_kv_heads, head_dim, capacity;

  __host__ __device__ int heads_per_group() const { return n_heads / n_kv_heads; }
  __host__ __device__ int n_rows() const { return n_tokens * heads_per_group(); }
  /// Which of the (T, H) vectors of q and out a row is.
  __device__ std::int64_t vector_of(int kv_head, int row) const {
    const int group = heads_per_group();
    return std::int64_t(row / group) * n_heads + kv_head * group + row % group;
  }
  /// The last key that a row sees.
  __device__ int last_key(int row, int kv_len) const {
    return kv_len - n_tokens + row / heads_per_group();
  }
};

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
