#include "lab/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {
namespace {

void run(const AttentionTask<float>& t, float* scratch) {
  kernels().attention_f32(t, scratch);
}
void run(const AttentionTask<Half>& t, float* scratch) {
  kernels().attention_f16(t, scratch);
}
void run(const AttentionTask<BFloat16>& t, float* scratch) {
  kernels().attention_bf16(t, scratch);
}

}  // namespace

// [region definition]
template <class KV>
void reference::attention(HostView<float, 3> out, HostView<const float, 3> q,
                          HostView<const KV, 3> k, HostView<const KV, 3> v, float scale) {
  check_attention(out.shape, q.shape, k.shape, v.shape);
  const auto [n_tokens, n_heads, head_dim] = q.shape;
  const auto [kv_len, n_kv_heads, unused] = k.shape;
  std::vector<float> p(
      static_cast<std::size_t>(kv_len));  // scores, then weights of the keys
  for (std::int64_t t = 0; t < n_tokens; ++t)
    for (std::int64_t h = 0; h < n_heads; ++h) {
      const std::int64_t visible = kv_len - n_tokens + t + 1,
                         group = h / (n_heads / n_kv_heads);
      float largest = -INFINITY;
      for (std::int64_t s = 0; s < visible; ++s) {
        float score = 0;
        for (std::int64_t d = 0; d < head_dim; ++d)
          score += q[t][h][d] * to_float(k[s][group][d]);
        p[std::size_t(s)] = score * scale;
        largest = std::max(largest, score * scale);
      }
      float sum = 0;
      for (std::int64_t s = 0; s < visible; ++s)
        sum += p[std::size_t(s)] = std::exp(p[std::size_t(s)] - largest);
      for (std::int64_t d = 0; d < head_dim; ++d) {
        float mixed = 0;
        for (std::int64_t s = 0; s < visible; ++s)
          mixed += p[std::size_t(s)] * to_float(v[s][group][d]);
        out[t][h].data[d] = mixed / sum;
      }
    }
}
// [endregion]

template <class KV>
void attention(HostView<float, 3> out, HostView<const float, 3> q, HostView<const KV, 3> k,
               HostView<const KV, 3> v, float scale) {
  check_attention(out.shape, q.shape, k.shape, v.shape);
  const auto [n_tokens, n_heads, head_dim] = q.shape;
  const auto [kv_len, n_kv_heads, unused] = k.shape;
  // Rows share the loaded keys and values; more than these push each other out of the
  // cache.
  constexpr std::int64_t kRows = 32;
  const std::int64_t per_task = std::max<std::int64_t>(1, kRows / (n_heads / n_kv_heads));
  const std::int64_t token_tasks = (n_tokens + per_task - 1) / per_task;
  AttentionTask<KV> task{out.data, q.data,     k.data, v.data, n_tokens, n_heads, head_dim,
                         kv_len,   n_kv_heads, scale,  0,      0,        0};
  const std::int64_t work = per_task * (n_heads / n_kv_heads) * kv_len * head_dim;
  const std::int64_t grain =
      std::max<std::int64_t>(1, kElementsPerTask / std::max<std::int64_t>(1, work));
  const std::int64_t groups = n_kv_heads, tokens = n_tokens;
  parallel_for(groups * token_tasks, grain, [&](std::int64_t begin, std::int64_t end) {
    thread_local std::vector<float> scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      AttentionTask<KV> part = task;
      part.group = i % groups;
      part.first = i / groups * per_task;
      part.end = std::min(tokens, part.first + per_task);
      if (scratch.size() < std::size_t(part.scratch_size()))
        scratch.resize(std::size_t(part.scratch_size()));
      run(part, scratch.data());
    }
  });
}

#define LAB_INSTANTIATE(KV)                                                            \
  template void attention<KV>(HostView<float, 3>, HostView<const float, 3>,            \
                              HostView<const KV, 3>, HostView<const KV, 3>, float);    \
  template void reference::attention<KV>(HostView<float, 3>, HostView<const float, 3>, \
                                         HostView<const KV, 3>, HostView<const KV, 3>, \
                                         float);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::cpu
