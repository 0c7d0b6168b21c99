/// @file
/// One call of the attention kernels, whoever asks: attention and paged_attention.
#pragma once

#include "cuda/compat.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::LAB_GPU {

/// Division by a number that is known only when the kernel runs, in a multiplication and a
/// shift instead of twenty instructions.
/// @par Source Granlund and Montgomery 1994, "Division by invariant integers using
///      multiplication", figure 4.1
struct Divisor {
  unsigned magic, shift;
  int value;

  explicit Divisor(int divisor) : magic(0), shift(0), value(divisor) {
    while ((std::uint64_t{1} << shift) < std::uint64_t(divisor)) ++shift;
    magic = unsigned(
        (((std::uint64_t{1} << shift) - unsigned(divisor)) << 32) / unsigned(divisor) + 1);
  }
  /// n / value, for 0 <= n < 2^31
  __device__ __forceinline__ int quotient(int n) const {
    return int((__umulhi(unsigned(n), magic) + unsigned(n)) >> shift);
  }
};

/// What all sequences of a call have in common.
struct AttentionShape {
  int n_heads, n_kv_heads, head_dim;
  int capacity;     ///< positions that a sequence has room for
  int max_queries;  ///< of a sequence

  __host__ __device__ int heads_per_group() const { return n_heads / n_kv_heads; }
  /// Rows of the sequence with the most queries.
  int max_rows() const { return max_queries * heads_per_group(); }
};

/// The sequences of a call, and where each begins and is stored. Null query_starts: there
/// is one, with max_queries queries. Null block_tables: it is stored in one piece.
struct AttentionBatch {
  const std::int32_t* query_starts;
  const std::int32_t* kv_lens;
  const std::int32_t* block_tables;
  int n_sequences, max_blocks;
  Divisor block_size;
};

/// Pointers and sizes of one call, in CUDA's types.
template <class KV>
struct AttentionProblem {
  float* out;
  const float* q;
  const KV *k, *v;
  float scale;
  AttentionBatch batch;
  AttentionShape shape;
  Stream stream;
};

/// @throws Error unless the kernels take heads of this size
void check_gpu_heads(const char* op, std::int64_t head_dim);
/// @return positions that max_blocks blocks hold
/// @throws Error if they are more than 2^30
std::int64_t check_gpu_capacity(const char* op, std::int64_t max_blocks,
                                std::int64_t block_size);

/// Launches the kernels that the sequences' numbers of queries ask for.
template <class KV>
void run_attention(const AttentionProblem<KV>& problem);

}  // namespace lab::LAB_GPU
