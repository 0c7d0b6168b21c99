/// @file
/// Ragged batches of random queries, keys and values for the tests of flash attention.
#pragma once

#include <utility>
#include <vector>

#include "kernels/support.hpp"
#include "lab/kernels/flash_attention.hpp"

namespace lab::test {

/// Queries and keys of one sequence.
using FlashSequence = std::pair<std::int32_t, std::int32_t>;

template <class KV>
struct FlashProblem {
  std::int64_t T = 0, S = 0, H, K, Dh;
  AttentionMask mask;
  std::vector<std::int32_t> query_starts{0}, key_starts{0};
  std::int64_t max_queries = 0, max_keys = 0;
  std::vector<float> q;
  std::vector<KV> k, v;
  float scale;

  FlashProblem(const std::vector<FlashSequence>& sequences, std::int64_t n_heads,
               std::int64_t n_kv_heads, std::int64_t head_dim, AttentionMask m,
               float magnitude = 1)
      : H(n_heads),
        K(n_kv_heads),
        Dh(head_dim),
        mask(m),
        scale(1 / std::sqrt(float(head_dim))) {
    for (const auto& [queries, keys] : sequences) {
      query_starts.push_back(std::int32_t(T += queries));
      key_starts.push_back(std::int32_t(S += keys));
      max_queries = std::max<std::int64_t>(max_queries, queries);
      max_keys = std::max<std::int64_t>(max_keys, keys);
    }
    Rng rng(31);
    q = random_floats(rng, T * H * Dh, magnitude);
    for (float& x : q) x = to_float(from_float<KV>(x));  // as KV stores them
    for (std::int64_t i = 0; i < S * K * Dh; ++i) {
      k.push_back(from_float<KV>(float(rng.normal())));
      v.push_back(from_float<KV>(float(rng.normal())));
    }
  }
  std::string name() const {
    return fmt::format("T={} S={} H={} K={} Dh={} {} sequences{}", T, S, H, K, Dh,
                       query_starts.size() - 1,
                       mask == AttentionMask::causal ? ", causal" : "");
  }
  std::int64_t n_sequences() const { return std::ssize(query_starts) - 1; }
  RaggedBatch<Space::host> batch() const {
    return {{query_starts.data(), {n_sequences() + 1}},
            {key_starts.data(), {n_sequences() + 1}},
            max_queries,
            max_keys};
  }
  HostView<const float, 3> queries() const { return view_of(q, {T, H, Dh}); }
  HostView<const KV, 3> keys() const { return {k.data(), {S, K, Dh}}; }
  HostView<const KV, 3> values() const { return {v.data(), {S, K, Dh}}; }

  /// What the reference gives: out, then lse.
  std::pair<std::vector<float>, std::vector<float>> expected() const {
    std::vector<float> out(q.size()), lse(std::size_t(T * H));
    cpu::reference::flash_attention<KV>({out.data(), {T, H, Dh}}, {lse.data(), {T, H}},
                                        queries(), keys(), values(), batch(), scale, mask);
    return {out, lse};
  }
};

}  // namespace lab::test
