#include "lab/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {
namespace {

template <class KV>
const AttentionKernels<KV>& kernels_of() {
  if constexpr (std::is_same_v<KV, float>) return kernels().attention_f32;
  if constexpr (std::is_same_v<KV, Half>) return kernels().attention_f16;
  if constexpr (std::is_same_v<KV, BFloat16>) return kernels().attention_bf16;
}

/// Memory that a thread keeps from call to call.
enum class Scratch { chunk, rows, partials };
template <Scratch>
float* scratch(std::int64_t floats) {
  thread_local Buffer buffer;
  const std::size_t bytes = std::size_t(floats) * sizeof(float);
  if (buffer.size() < bytes) buffer = Buffer(bytes);
  return buffer.as<float>();
}

/// All chunks of a task's keys, one after the other.
template <class KV>
void attend_rows(const AttentionTask<KV>& task) {
  const std::int64_t rows = task.n_rows(), dim = task.padded_dim();
  const std::int64_t size = PartialAttention::size(rows, dim);
  float* memory = scratch<Scratch::rows>(2 * size);
  float* of_chunk = scratch<Scratch::chunk>(task.scratch_size());
  const PartialAttention whole(memory, rows, dim), part(memory + size, rows, dim);
  kernels_of<KV>().chunk(task, 0, whole, of_chunk);
  for (std::int64_t chunk = 1; chunk < task.n_chunks(); ++chunk) {
    kernels_of<KV>().chunk(task, chunk, part, of_chunk);
    kernels().merge_attention(whole, part, task.first_row(chunk), rows, dim);
  }
  kernels_of<KV>().finish(task, whole);
}

/// Few queries and many keys: threads share the chunks, whose results are merged in order.
template <class KV>
void attend_chunks(AttentionTask<KV> task) {
  task.end = task.n_tokens;
  const std::int64_t rows = task.n_rows(), dim = task.padded_dim();
  const std::int64_t size = PartialAttention::size(rows, dim);
  const std::int64_t groups = task.n_kv_heads, chunks = task.n_chunks();
  float* memory = scratch<Scratch::partials>(groups * chunks * size);
  const auto part = [&](std::int64_t group, std::int64_t chunk) {
    return PartialAttention(memory + (group * chunks + chunk) * size, rows, dim);
  };
  const std::int64_t work = rows * kChunkKeys * task.head_dim;
  parallel_for(groups * chunks, kElementsPerTask / std::max<std::int64_t>(1, work),
               [&](std::int64_t begin, std::int64_t end) {
                 AttentionTask<KV> one = task;
                 for (std::int64_t i = begin; i < end; ++i) {
                   one.group = i % groups;
                   kernels_of<KV>().chunk(one, i / groups, part(one.group, i / groups),
                                          scratch<Scratch::chunk>(one.scratch_size()));
                 }
               });
  for (task.group = 0; task.group < groups; ++task.group) {
    const PartialAttention whole = part(task.group, 0);
    for (std::int64_t chunk = 1; chunk < chunks; ++chunk)
      kernels().merge_attention(whole, part(task.group, chunk), task.first_row(chunk), rows,
                                dim);
    kernels_of<KV>().finish(task, whole);
  }
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
  const AttentionTask<KV> all{out.data,   q.data,     k.data,     v.data,     q.shape[0],
                              q.shape[1], q.shape[2], k.shape[0], k.shape[1], scale};
  const std::int64_t heads = all.heads_per_group(), groups = all.n_kv_heads;
  const std::int64_t tokens = all.n_tokens, threads = n_threads();
  // A task transposes the keys that it sees, which many rows make cheap; but there should
  // be several tasks for each thread.
  constexpr std::int64_t kLeastRows = 32, kMostRows = 4 * kAttentionRows;
  const std::int64_t per_task = std::clamp<std::int64_t>(
      tokens * groups / (4 * threads), (kLeastRows + heads - 1) / heads,
      std::max<std::int64_t>(1, kMostRows / heads));
  const std::int64_t token_tasks = (tokens + per_task - 1) / per_task;
  if (threads > 1 && token_tasks == 1 && groups < 4 * threads) return attend_chunks(all);
  const std::int64_t work = std::min(tokens, per_task) * heads * all.kv_len * all.head_dim;
  parallel_for(
      groups * token_tasks,
      std::max<std::int64_t>(1, kElementsPerTask / std::max<std::int64_t>(1, work)),
      [&](std::int64_t begin, std::int64_t end) {
        AttentionTask<KV> task = all;
        for (std::int64_t i = begin; i < end; ++i) {
          task.group = i % groups;
          task.first = i / groups * per_task;
          task.end = std::min(tokens, task.first + per_task);
          attend_rows(task);
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
