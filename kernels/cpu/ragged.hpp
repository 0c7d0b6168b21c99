/// @file
/// One sequence of a ragged batch, as the flash and the naive attention walk over them.
#pragma once

#include <algorithm>

#include "lab/kernels/flash_attention.hpp"

namespace lab::cpu {

/// Rows [first_query, first_query + n_queries) see keys from first_key on.
struct RaggedSequence {
  std::int64_t first_query, n_queries, first_key, n_keys;
  bool causal;

  RaggedSequence(const RaggedBatch<Space::host>& batch, std::int64_t b, AttentionMask mask)
      : first_query(batch.query_starts[b]),
        n_queries(batch.query_starts[b + 1] - first_query),
        first_key(batch.key_starts[b]),
        n_keys(batch.key_starts[b + 1] - first_key),
        causal(mask == AttentionMask::causal) {}
  /// How many keys query t sees, from the first on.
  std::int64_t visible(std::int64_t t) const {
    return causal ? std::max<std::int64_t>(0, n_keys - n_queries + t + 1) : n_keys;
  }
  /// The first query that sees key s; all after it do.
  std::int64_t first_to_see(std::int64_t s) const {
    return causal ? std::max<std::int64_t>(0, s - (n_keys - n_queries)) : 0;
  }
};

}  // namespace lab::cpu
