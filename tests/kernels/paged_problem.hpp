/// @file
/// Ragged batches over scattered blocks, for the tests of paged attention on every device.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernels/support.hpp"
#include "lab/kernels/attention.hpp"
#include "lab/kernels/paged_attention.hpp"

namespace lab::test {

/// Queries and positions of a sequence.
struct PagedSequence {
  std::int64_t queries, kv_len;
};

/// Random sequences in blocks in random order. Whatever no query may see holds NaN: unused
/// rows, unused blocks, queries behind the last sequence's; unused table entries are -1.
template <class KV>
struct PagedProblem {
  std::vector<PagedSequence> sequences;
  std::int64_t H, K, Dh, block_size, max_blocks, n_blocks, T;
  float scale;
  std::vector<float> q;                                  // (T, H, Dh)
  std::vector<KV> k, v;                                  // (n_blocks, block_size, K, Dh)
  std::vector<std::vector<KV>> keys, values;             // of each: (kv_len, K, Dh)
  std::vector<std::int32_t> starts{0}, kv_lens, tables;  // see PagedBatch
  static constexpr std::int64_t kPadding = 2;            // rows behind the last sequence

  PagedProblem(std::vector<PagedSequence> of, std::int64_t heads, std::int64_t kv_heads,
               std::int64_t head_dim, std::int64_t block)
      : sequences(std::move(of)),
        H(heads),
        K(kv_heads),
        Dh(head_dim),
        block_size(block),
        max_blocks(1),
        n_blocks(3),
        T(kPadding),
        scale(1 / std::sqrt(float(head_dim))) {
    for (const auto& [queries, kv_len] : sequences) {
      T += queries;
      const std::int64_t used = (kv_len + block_size - 1) / block_size;
      n_blocks += used;
      max_blocks = std::max(max_blocks, used + 1);
    }
    Rng rng(5);
    q = random_floats(rng, T * H * Dh);
    std::fill(q.end() - std::ptrdiff_t(kPadding * H * Dh), q.end(), NAN);
    const std::size_t size = std::size_t(n_blocks * block_size * K * Dh);
    k.assign(size, from_float<KV>(NAN));
    v = k;
    tables.assign(sequences.size() * std::size_t(max_blocks), -1);
    std::vector<std::int32_t> free(static_cast<std::size_t>(n_blocks));
    std::iota(free.begin(), free.end(), 0);
    for (std::size_t i = free.size(); i > 1; --i)
      std::swap(free[i - 1], free[std::size_t(rng.bits() % i)]);
    for (std::size_t b = 0; b < sequences.size(); ++b) fill(rng, b, free);
  }

  std::string name() const {
    std::string text = fmt::format("H={} K={} Dh={} block_size={}:", H, K, Dh, block_size);
    for (const auto& [queries, kv_len] : sequences)
      text += fmt::format(" {}/{}", queries, kv_len);
    return text;
  }
  std::int64_t max_queries() const {
    std::int64_t most = 0;
    for (const PagedSequence& s : sequences) most = std::max(most, s.queries);
    return most;
  }
  PagedBatch<Space::host> batch() const {
    const std::int64_t B = std::ssize(sequences);
    return {{starts.data(), {B + 1}},
            {kv_lens.data(), {B}},
            {tables.data(), {B, max_blocks}},
            max_queries()};
  }
  HostView<const float, 3> queries() const { return view_of(q, {T, H, Dh}); }
  HostView<const KV, 4> blocks(const std::vector<KV>& x) const {
    return {x.data(), {n_blocks, block_size, K, Dh}};
  }

  /// What `attend(out, q, k, v)` makes of each sequence alone, stored in one piece, in
  /// front of padding that nothing has touched.
  template <class F>
  std::vector<float> one_by_one(F&& attend) const {
    std::vector<float> out(q.size(), 12345);
    for (std::size_t b = 0; b < sequences.size(); ++b) {
      const auto [n, kv_len] = sequences[b];
      if (n == 0) continue;
      HostView<float, 3> rows{out.data(), {T, H, Dh}};
      attend(rows.rows(starts[b], starts[b + 1]), queries().rows(starts[b], starts[b + 1]),
             HostView<const KV, 3>{keys[b].data(), {kv_len, K, Dh}},
             HostView<const KV, 3>{values[b].data(), {kv_len, K, Dh}}, scale);
    }
    return out;
  }

 private:
  void fill(Rng& rng, std::size_t b, std::vector<std::int32_t>& free) {
    const auto [queries, kv_len] = sequences[b];
    starts.push_back(starts.back() + std::int32_t(queries));
    kv_lens.push_back(std::int32_t(kv_len));
    keys.emplace_back(), values.emplace_back();
    for (std::int64_t s = 0; s < kv_len; ++s) {
      auto& block = tables[b * std::size_t(max_blocks) + std::size_t(s / block_size)];
      if (s % block_size == 0) {
        block = free.back();
        free.pop_back();
      }
      const std::int64_t row = (block * block_size + s % block_size) * K * Dh;
      for (std::int64_t i = 0; i < K * Dh; ++i) {
        keys[b].push_back(k[std::size_t(row + i)] = from_float<KV>(float(rng.normal())));
        values[b].push_back(v[std::size_t(row + i)] = from_float<KV>(float(rng.normal())));
      }
    }
  }
};

}  // namespace lab::test
