#include "lab/kernels/flash_attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention_tasks.hpp"
#include "lab/core/error.hpp"
#include "lab/kernels/check.hpp"
#include "ragged.hpp"

namespace lab::cpu {

// [region definition]
template <class KV>
void reference::flash_attention(HostView<float, 3> out, HostView<float, 2> lse,
                                HostView<const float, 3> q, HostView<const KV, 3> k,
                                HostView<const KV, 3> v,
                                const RaggedBatch<Space::host>& batch, float scale,
                                AttentionMask mask) {
  check_flash_attention(out.shape, lse.shape, q.shape, k.shape, v.shape, batch);
  check_ragged_batch(batch, q.shape[0], k.shape[0]);
  const auto [unused, n_heads, head_dim] = q.shape;
  for (std::int64_t b = 0; b + 1 < batch.query_starts.shape[0]; ++b) {
    const RaggedSequence one(batch, b, mask);
    for (std::int64_t t = 0; t < one.n_queries; ++t)
      for (std::int64_t h = 0; h < n_heads; ++h) {
        const std::int64_t row = one.first_query + t, group = h / (n_heads / k.shape[1]);
        const std::int64_t visible = one.visible(t);
        std::vector<double> p(static_cast<std::size_t>(visible));  // scores, then weights
        double largest = -INFINITY, sum = 0;
        for (std::int64_t s = 0; s < visible; ++s) {
          double score = 0;
          for (std::int64_t d = 0; d < head_dim; ++d)
            score +=
                double(q[row][h][d]) * double(to_float(k[one.first_key + s][group][d]));
          p[std::size_t(s)] = score * double(scale);
          largest = std::max(largest, p[std::size_t(s)]);
        }
        for (double& w : p) sum += w = std::exp(w - largest);
        lse[row].data[h] = visible == 0 ? -INFINITY : float(largest + std::log(sum));
        for (std::int64_t d = 0; d < head_dim; ++d) {
          double mixed = 0;
          for (std::int64_t s = 0; s < visible; ++s)
            mixed += p[std::size_t(s)] * double(to_float(v[one.first_key + s][group][d]));
          out[row][h].data[d] = visible == 0 ? 0.0f : float(mixed / sum);
        }
      }
  }
}
// [endregion]

namespace {

/// Some rows of one kv head, and where the logarithms of all rows of their sequence go.
template <class KV>
struct FlashTask {
  AttentionTask<KV> rows;
  float* lse;  // (n_tokens, H)
  bool causal;
};

template <class KV>
void store_lse(const FlashTask<KV>& task, const PartialAttention& whole) {
  const std::int64_t heads = task.rows.heads_per_group();
  for (std::int64_t row = 0; row < task.rows.n_rows(); ++row)
    task.lse[(task.rows.first + row / heads) * task.rows.n_heads + task.rows.group * heads +
             row % heads] = whole.largest[row] + std::log(whole.sum[row]);
}

/// Rows that all see all keys: for the kernels, the heads of a single token, for which the
/// queries are gathered and the results scattered.
template <class KV>
PartialAttention flash_unmasked(const AttentionTask<KV>& task) {
  const std::int64_t rows = task.n_rows(), heads = task.heads_per_group();
  const std::int64_t width = heads * task.head_dim;  // of one token
  float* q = scratch<Scratch::partials>(2 * rows * task.head_dim);
  float* out = q + rows * task.head_dim;
  AttentionTask<KV> one = task;
  const auto at = [&](std::int64_t token) {
    return (token * task.n_heads + task.group * heads) * task.head_dim;
  };
  for (std::int64_t t = task.first; t < task.end; ++t)
    std::copy_n(task.q + at(t), width, q + (t - task.first) * width);
  one.q = q;
  one.out = out;
  one.k += task.group * task.head_dim;
  one.v += task.group * task.head_dim;
  one.n_heads = rows * task.n_kv_heads;
  one.n_tokens = one.end = 1;
  one.first = one.group = 0;
  const PartialAttention whole = attend_rows(one);
  for (std::int64_t t = task.first; t < task.end; ++t)
    std::copy_n(out + (t - task.first) * width, width, task.out + at(t));
  return whole;
}

/// The tasks of a call, in one parallel region.
template <class KV>
class FlashTasks {
 public:
  /// All rows of a sequence, whose queries each see at least one key.
  void add(AttentionTask<KV> all, float* lse, bool causal) {
    work_ += attention_work(all) * double(all.n_kv_heads);
    const std::int64_t per_task = AttentionSplit(all).per_task;
    for (all.first = 0; all.first < all.n_tokens; all.first = all.end) {
      all.end = std::min(all.n_tokens, all.first + per_task);
      for (all.group = 0; all.group < all.n_kv_heads; ++all.group)
        tasks_.push_back({all, lse, causal});
    }
  }
  void run() const {
    if (tasks_.empty()) return;
    const auto each =
        std::max<std::int64_t>(1, std::int64_t(work_ / double(tasks_.size())));
    parallel_for(std::ssize(tasks_), std::max<std::int64_t>(1, kElementsPerTask / each),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const FlashTask<KV>& task = tasks_[std::size_t(i)];
                     store_lse(task, task.causal ? attend_rows(task.rows)
                                                 : flash_unmasked(task.rows));
                   }
                 });
  }

 private:
  std::vector<FlashTask<KV>> tasks_;
  double work_ = 0;
};

}  // namespace

template <class KV>
void flash_attention(HostView<float, 3> out, HostView<float, 2> lse,
                     HostView<const float, 3> q, HostView<const KV, 3> k,
                     HostView<const KV, 3> v, const RaggedBatch<Space::host>& batch,
                     float scale, AttentionMask mask) {
  check_flash_attention(out.shape, lse.shape, q.shape, k.shape, v.shape, batch);
  check_ragged_batch(batch, q.shape[0], k.shape[0]);
  const auto [unused, n_heads, head_dim] = q.shape;
  const std::int64_t n_kv_heads = k.shape[1], width = n_heads * head_dim;
  FlashTasks<KV> tasks;
  for (std::int64_t b = 0; b + 1 < batch.query_starts.shape[0]; ++b) {
    const RaggedSequence one(batch, b, mask);
    // The first queries see nothing if there are more of them than keys.
    const std::int64_t blind =
        one.n_keys == 0 ? one.n_queries : std::min(one.n_queries, one.first_to_see(0));
    const std::int64_t first = one.first_query + blind, n_tokens = one.n_queries - blind;
    std::fill_n(out.data + one.first_query * width, blind * width, 0.0f);
    std::fill_n(lse.data + one.first_query * n_heads, blind * n_heads, -INFINITY);
    if (n_tokens == 0) continue;
    tasks.add({.out = out.data + first * width,
               .q = q.data + first * width,
               .k = k.data + one.first_key * n_kv_heads * head_dim,
               .v = v.data + one.first_key * n_kv_heads * head_dim,
               .n_tokens = n_tokens,
               .n_heads = n_heads,
               .head_dim = head_dim,
               .kv_len = one.n_keys,
               .n_kv_heads = n_kv_heads,
               .scale = scale},
              lse.data + first * n_heads, one.causal);
  }
  tasks.run();
}

template <class KV>
void flash_attention(HostView<float, 3> out, HostView<float, 2> lse,
                     HostView<const float, 3> q, HostView<const KV, 4> k,
                     HostView<const KV, 4> v, const PagedBatch<Space::host>& batch,
                     float scale, AttentionMask mask) {
  check_flash_attention(out.shape, lse.shape, q.shape, k.shape, v.shape, batch);
  check_paged_batch(batch, q.shape[0], k.shape[0], k.shape[1], "flash_attention");
  FlashTasks<KV> tasks;
  for (std::int64_t b = 0; b < batch.kv_lens.shape[0]; ++b) {
    const std::int64_t begin = batch.query_starts[b], end = batch.query_starts[b + 1];
    if (begin == end) continue;
    tasks.add(paged_sequence(out, q, k, v, batch, b, scale), lse.data + begin * q.shape[1],
              mask == AttentionMask::causal);
  }
  tasks.run();
}

// [region merge]
void merge_attention_states(HostView<float, 3> out_a, HostView<float, 2> lse_a,
                            HostView<const float, 3> out_b,
                            HostView<const float, 2> lse_b) {
  LAB_CHECK(out_a.shape == out_b.shape && lse_a.shape == lse_b.shape &&
                lse_a.shape[0] == out_a.shape[0] && lse_a.shape[1] == out_a.shape[1],
            "merge_attention_states: out is (T={}, H={}, Dh={}) and (T={}, H={}, Dh={}), "
            "lse is (T={}, H={}) and (T={}, H={}); give both parts the same T, H and Dh",
            out_a.shape[0], out_a.shape[1], out_a.shape[2], out_b.shape[0], out_b.shape[1],
            out_b.shape[2], lse_a.shape[0], lse_a.shape[1], lse_b.shape[0], lse_b.shape[1]);
  const std::int64_t head_dim = out_a.shape[2];
  for (std::int64_t row = 0; row < lse_a.size(); ++row) {
    float* a = out_a.data + row * head_dim;
    const float* b = out_b.data + row * head_dim;
    const float of_a = lse_a.data[row], of_b = lse_b.data[row];
    if (of_b == -INFINITY) continue;  // exp(-inf - -inf) would be NaN if a is empty, too
    const float largest = of_a == -INFINITY ? of_b : std::max(of_a, of_b);
    const float weight_a = std::exp(of_a - largest), weight_b = std::exp(of_b - largest);
    const float sum = weight_a + weight_b;
    for (std::int64_t d = 0; d < head_dim; ++d)
      a[d] = ((weight_a > 0 ? weight_a * a[d] : 0) + weight_b * b[d]) / sum;
    lse_a.data[row] = largest + std::log(sum);
  }
}
// [endregion]

#define LAB_INSTANTIATE(KV)                                                                \
  template void flash_attention<KV>(                                                       \
      HostView<float, 3>, HostView<float, 2>, HostView<const float, 3>,                    \
      HostView<const KV, 3>, HostView<const KV, 3>, const RaggedBatch<Space::host>&,       \
      float, AttentionMask);                                                               \
  template void flash_attention<KV>(HostView<float, 3>, HostView<float, 2>,                \
                                    HostView<const float, 3>, HostView<const KV, 4>,       \
                                    HostView<const KV, 4>, const PagedBatch<Space::host>&, \
                                    float, AttentionMask);                                 \
  template void reference::flash_attention<KV>(                                            \
      HostView<float, 3>, HostView<float, 2>, HostView<const float, 3>,                    \
      HostView<const KV, 3>, HostView<const KV, 3>, const RaggedBatch<Space::host>&,       \
      float, AttentionMask);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::cpu
