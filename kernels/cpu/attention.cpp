#include "lab/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention_tasks.hpp"
#include "lab/kernels/check.hpp"

namespace lab::cpu {

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
  const AttentionTask<KV> all{out.data,   q.data,     k.data,     v.data,     q.shape[0],
                              q.shape[1], q.shape[2], k.shape[0], k.shape[1], scale};
  attend_all<KV>({&all, 1});
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
