// Attention as two matrix products with a stored matrix between them: what flash attention
// is compared with. Each step is the library's fastest.
#include <algorithm>
#include <cmath>

#include "lab/core/buffer.hpp"
#include "lab/kernels/check.hpp"
#include "lab/kernels/flash_attention.hpp"
#include "lab/kernels/linear.hpp"
#include "ragged.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {
namespace {

/// Queries whose scores are one product: of a causal matrix the keys behind the last of
/// them are left out.
constexpr std::int64_t kQueryBlock = 256;

/// One head's operands, its heads' rows brought together, in memory that a thread keeps
/// from call to call: a matrix of 64 MiB that is new each time costs as much as a product.
struct NaiveHead {
  std::int64_t n_queries, n_keys, head_dim;
  float *q, *k, *v;  // (T, Dh) times scale, (S, Dh), transposed (Dh, S)
  float* out;        // (T, Dh)
  float* scores;     // (T, S)

  NaiveHead(std::int64_t queries, std::int64_t keys, std::int64_t dim)
      : n_queries(queries), n_keys(keys), head_dim(dim) {
    thread_local Buffer memory;
    const auto bytes =
        std::size_t(2 * (queries + keys) * dim + queries * keys) * sizeof(float);
    if (memory.size() < bytes) memory = Buffer(bytes);
    q = memory.as<float>();
    k = q + queries * dim;
    v = k + keys * dim;
    out = v + keys * dim;
    scores = out + queries * dim;
  }
  std::int64_t score_bytes() const {
    return n_queries * n_keys * std::int64_t(sizeof(float));
  }
};

const std::byte* bytes_of(const float* p) { return reinterpret_cast<const std::byte*>(p); }

/// The first `keys` columns of v transposed, dense.
Linear values_of(const NaiveHead& head, std::int64_t keys) {
  if (keys == head.n_keys)
    return Linear({bytes_of(head.v), DType::f32, head.head_dim, keys});
  Buffer dense(std::size_t(head.head_dim * keys) * sizeof(float));
  for (std::int64_t d = 0; d < head.head_dim; ++d)
    std::copy_n(head.v + d * head.n_keys, keys, dense.as<float>() + d * keys);
  return Linear({dense.data(), DType::f32, head.head_dim, keys});
}

/// Scores, weights and output of the queries [begin, end), which lie at the begin of their
/// rows of the matrix.
void attend_block(NaiveHead& head, const RaggedSequence& one, std::int64_t begin,
                  std::int64_t end) {
  const std::int64_t keys = one.visible(end - 1), dim = head.head_dim;
  float* out = head.out + begin * dim;
  if (keys == 0) {
    std::fill_n(out, (end - begin) * dim, 0.0f);
    return;
  }
  float* scores = head.scores + begin * head.n_keys;  // (end - begin, keys)
  Linear({bytes_of(head.k), DType::f32, keys, dim})(
      {scores, {end - begin, keys}}, {head.q + begin * dim, {end - begin, dim}});
  for_rows(end - begin, keys, [&](std::int64_t i) {
    float* row = scores + i * keys;
    const std::int64_t visible = one.visible(begin + i);
    if (visible > 0) kernels().softmax(row, row, visible);
    std::fill(row + visible, row + keys, 0.0f);
  });
  values_of(head, keys)({out, {end - begin, dim}}, {scores, {end - begin, keys}});
}

}  // namespace

std::int64_t naive_attention(HostView<float, 3> out, HostView<const float, 3> q,
                             HostView<const float, 3> k, HostView<const float, 3> v,
                             const RaggedBatch<Space::host>& batch, float scale,
                             AttentionMask mask) {
  check_flash_attention(out.shape, {q.shape[0], q.shape[1]}, q.shape, k.shape, v.shape,
                        batch);
  check_ragged_batch(batch, q.shape[0], k.shape[0]);
  const auto [unused, n_heads, head_dim] = q.shape;
  std::int64_t largest = 0;
  for (std::int64_t b = 0; b + 1 < batch.query_starts.shape[0]; ++b) {
    const RaggedSequence one(batch, b, mask);
    if (one.n_queries == 0) continue;
    NaiveHead head(one.n_queries, one.n_keys, head_dim);
    largest = std::max(largest, head.score_bytes());
    for (std::int64_t h = 0; h < n_heads; ++h) {
      const std::int64_t group = h / (n_heads / k.shape[1]);
      for (std::int64_t t = 0; t < one.n_queries; ++t)
        for (std::int64_t d = 0; d < head_dim; ++d)
          head.q[t * head_dim + d] = scale * q[one.first_query + t][h][d];
      for (std::int64_t s = 0; s < one.n_keys; ++s) {
        const float* value = v[one.first_key + s][group].data;
        std::copy_n(k[one.first_key + s][group].data, head_dim, head.k + s * head_dim);
        for (std::int64_t d = 0; d < head_dim; ++d) head.v[d * one.n_keys + s] = value[d];
      }
      const std::int64_t step = one.causal ? kQueryBlock : one.n_queries;
      for (std::int64_t t = 0; t < one.n_queries; t += step)
        attend_block(head, one, t, std::min(one.n_queries, t + step));
      for (std::int64_t t = 0; t < one.n_queries; ++t)
        std::copy_n(head.out + t * head_dim, head_dim, out[one.first_query + t][h].data);
    }
  }
  return largest;
}

}  // namespace lab::cpu
