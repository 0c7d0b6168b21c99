/// @file
/// How attention is shared among threads: for one sequence or for a ragged batch of them.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kernels/paged_attention.hpp"
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

/// Sequence b of a paged batch, whose first, end and group are still to be set.
template <class KV>
AttentionTask<KV> paged_sequence(HostView<float, 3> out, HostView<const float, 3> q,
                                 HostView<const KV, 4> k, HostView<const KV, 4> v,
                                 const PagedBatch<Space::host>& batch, std::int64_t b,
                                 float scale) {
  const std::int64_t begin = batch.query_starts[b];
  const std::int64_t first = begin * q.shape[1] * q.shape[2];
  return {.out = out.data + first,
          .q = q.data + first,
          .k = k.data,
          .v = v.data,
          .n_tokens = batch.query_starts[b + 1] - begin,
          .n_heads = q.shape[1],
          .head_dim = q.shape[2],
          .kv_len = batch.kv_lens[b],
          .n_kv_heads = k.shape[2],
          .scale = scale,
          .block_table = batch.block_tables[b].data,
          .block_size = k.shape[1]};
}

// [region chunks]
/// All chunks of a task's keys, one after the other. The rows' largest scores and sums are
/// left in memory of this thread.
template <class KV>
PartialAttention attend_rows(const AttentionTask<KV>& task) {
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
  return whole;
}
// [endregion]

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

/// One sequence's rows as tasks: of each kv head, `per_task` tokens at a time. A task
/// transposes the keys that it sees, which many rows make cheap; but there should be
/// several tasks for each thread.
struct AttentionSplit {
  std::int64_t per_task, n_tasks;

  template <class KV>
  explicit AttentionSplit(const AttentionTask<KV>& all) {
    constexpr std::int64_t kLeastRows = 32, kMostRows = 4 * kAttentionRows;
    const std::int64_t heads = all.heads_per_group();
    per_task = std::clamp<std::int64_t>(all.n_tokens * all.n_kv_heads / (4 * n_threads()),
                                        (kLeastRows + heads - 1) / heads,
                                        std::max<std::int64_t>(1, kMostRows / heads));
    n_tasks = all.n_kv_heads * ((all.n_tokens + per_task - 1) / per_task);
  }
};

/// Multiplications of one kv head's rows with all keys.
template <class KV>
double attention_work(const AttentionTask<KV>& all) {
  return double(all.n_tokens) * double(all.heads_per_group()) * double(all.kv_len) *
         double(all.head_dim);
}

/// All rows of all sequences: in one parallel region, whose tasks are as large as possible.
/// A sequence with too few tasks to keep every thread busy has its keys shared instead.
/// Neither choice changes a bit of the result.
template <class KV>
void attend_all(std::span<const AttentionTask<KV>> sequences) {
  double total = 0;
  for (const AttentionTask<KV>& s : sequences)
    total += attention_work(s) * double(s.n_kv_heads);
  std::vector<std::int64_t> first_task{0};  // of each sequence
  for (const AttentionTask<KV>& s : sequences) {
    const AttentionSplit split(s);
    const bool shared = n_threads() > 1 && split.n_tasks == s.n_kv_heads &&
                        total < attention_work(s) * 4 * double(n_threads());
    if (shared) attend_chunks(s);
    first_task.push_back(first_task.back() + (shared ? 0 : split.n_tasks));
  }
  const std::int64_t n_tasks = first_task.back();
  if (n_tasks == 0) return;
  const auto work = std::max<std::int64_t>(1, std::int64_t(total / double(n_tasks)));
  parallel_for(
      n_tasks, std::max<std::int64_t>(1, kElementsPerTask / work),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto next = std::upper_bound(first_task.begin(), first_task.end(), i);
          AttentionTask<KV> task = sequences[std::size_t(next - first_task.begin() - 1)];
          const std::int64_t number = i - *(next - 1);
          const std::int64_t per_task = AttentionSplit(task).per_task;
          task.group = number % task.n_kv_heads;
          task.first = number / task.n_kv_heads * per_task;
          task.end = std::min(task.n_tokens, task.first + per_task);
          attend_rows(task);
        }
      });
}

}  // namespace
}  // namespace lab::cpu
