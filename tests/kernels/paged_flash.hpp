/// @file
/// What flash attention over blocks must give, for its tests on every device.
#pragma once

#include <utility>

#include "kernels/paged_problem.hpp"
#include "lab/kernels/flash_attention.hpp"

namespace lab::test {

constexpr AttentionMask kMasks[] = {AttentionMask::none, AttentionMask::causal};
constexpr std::int64_t kBlockSizes[] = {1, 7, 16, 64, 200};

/// out (T, H, Dh) and lse (T, H).
using FlashResult = std::pair<std::vector<float>, std::vector<float>>;

/// A problem whose queries are numbers that KV holds, as tensor cores round them.
template <class KV>
PagedProblem<KV> rounded(PagedProblem<KV> p) {
  for (float& x : p.q) x = to_float(from_float<KV>(x));
  return p;
}

/// What `attend`, a flash attention over rows in one piece, makes of the sequences' rows;
/// behind them padding that nothing has touched.
template <class KV, class F>
FlashResult gathered(const PagedProblem<KV>& p, AttentionMask mask, F&& attend) {
  std::vector<KV> k, v;  // (S, K, Dh)
  std::vector<std::int32_t> key_starts{0};
  for (std::size_t b = 0; b < p.sequences.size(); ++b) {
    k.insert(k.end(), p.keys[b].begin(), p.keys[b].end());
    v.insert(v.end(), p.values[b].begin(), p.values[b].end());
    key_starts.push_back(key_starts.back() + p.kv_lens[b]);
  }
  const std::int64_t n = p.starts.back(), S = key_starts.back();
  const std::int64_t B = std::ssize(p.sequences);
  FlashResult r{std::vector<float>(p.q.size(), 12345),
                std::vector<float>(std::size_t(p.T * p.H), 12345)};
  attend(HostView<float, 3>{r.first.data(), {n, p.H, p.Dh}},
         HostView<float, 2>{r.second.data(), {n, p.H}}, p.queries().rows(0, n),
         HostView<const KV, 3>{k.data(), {S, p.K, p.Dh}},
         HostView<const KV, 3>{v.data(), {S, p.K, p.Dh}},
         RaggedBatch<Space::host>{{p.starts.data(), {B + 1}}, {key_starts.data(), {B + 1}}},
         p.scale, mask);
  return r;
}

/// What the definition gives.
template <class KV>
FlashResult flash_expected(const PagedProblem<KV>& p, AttentionMask mask) {
  return gathered(p, mask, [](auto&&... x) {
    cpu::reference::flash_attention<KV>(std::forward<decltype(x)>(x)...);
  });
}

/// Two sequences of 40 positions, of which the first 32 lie in the same two blocks.
template <class KV>
PagedProblem<KV> sharing_blocks(std::int64_t head_dim) {
  PagedProblem<KV> p({{1, 40}, {9, 40}}, 2, 1, head_dim, 16);
  for (const std::int64_t i : {0, 1})
    p.tables[std::size_t(p.max_blocks + i)] = p.tables[std::size_t(i)];
  for (std::size_t i = 0; i < std::size_t(32 * head_dim); ++i)
    p.keys[1][i] = p.keys[0][i], p.values[1][i] = p.values[0][i];
  return p;
}

}  // namespace lab::test
