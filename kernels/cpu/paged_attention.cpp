#include "lab/kernels/paged_attention.hpp"

#include <algorithm>
#include <vector>

#include "attention_tasks.hpp"
#include "lab/kernels/attention.hpp"
#include "lab/kernels/check.hpp"

namespace lab::cpu {

// [region definition]
template <class KV>
void reference::paged_attention(HostView<float, 3> out, HostView<const float, 3> q,
                                HostView<const KV, 4> k, HostView<const KV, 4> v,
                                const PagedBatch<Space::host>& batch, float scale) {
  check_paged_attention(out.shape, q.shape, k.shape, v.shape, batch);
  check_paged_batch(batch, q.shape[0], k.shape[0], k.shape[1]);
  const std::int64_t block_size = k.shape[1], row = k.shape[2] * k.shape[3];
  for (std::int64_t b = 0; b < batch.kv_lens.shape[0]; ++b) {
    const std::int64_t begin = batch.query_starts[b], end = batch.query_starts[b + 1];
    if (begin == end) continue;
    const std::int64_t kv_len = batch.kv_lens[b];
    std::vector<KV> keys, values;  // (kv_len, K, Dh)
    for (std::int64_t s = 0; s < kv_len; ++s) {
      const std::int64_t slot =
          batch.block_tables[b][s / block_size] * block_size + s % block_size;
      keys.insert(keys.end(), k.data + slot * row, k.data + (slot + 1) * row);
      values.insert(values.end(), v.data + slot * row, v.data + (slot + 1) * row);
    }
    reference::attention<KV>(out.rows(begin, end), q.rows(begin, end),
                             {keys.data(), {kv_len, k.shape[2], k.shape[3]}},
                             {values.data(), {kv_len, k.shape[2], k.shape[3]}}, scale);
  }
}
// [endregion]

template <class KV>
void paged_attention(HostView<float, 3> out, HostView<const float, 3> q,
                     HostView<const KV, 4> k, HostView<const KV, 4> v,
                     const PagedBatch<Space::host>& batch, float scale) {
  check_paged_attention(out.shape, q.shape, k.shape, v.shape, batch);
  check_paged_batch(batch, q.shape[0], k.shape[0], k.shape[1]);
  std::vector<AttentionTask<KV>> sequences;
  for (std::int64_t b = 0; b < batch.kv_lens.shape[0]; ++b) {
    const std::int64_t begin = batch.query_starts[b], end = batch.query_starts[b + 1];
    if (begin == end) continue;
    sequences.push_back(paged_sequence(out, q, k, v, batch, b, scale));
  }
  attend_all<KV>(sequences);
}

#define LAB_INSTANTIATE(KV)                                                       \
  template void paged_attention<KV>(HostView<float, 3>, HostView<const float, 3>, \
                                    HostView<const KV, 4>, HostView<const KV, 4>, \
                                    const PagedBatch<Space::host>&, float);       \
  template void reference::paged_attention<KV>(                                   \
      HostView<float, 3>, HostView<const float, 3>, HostView<const KV, 4>,        \
      HostView<const KV, 4>, const PagedBatch<Space::host>&, float);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::cpu
