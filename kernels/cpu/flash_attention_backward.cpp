#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kernels/check.hpp"
#include "lab/kernels/flash_attention.hpp"
#include "ragged.hpp"

namespace lab::cpu {
namespace {

/// Operands of the backward pass, and what it computes.
struct Backward {
  HostView<float, 3> dq, dk, dv;
  HostView<const float, 3> dout, q, k, v;
  float scale;
};

void check_backward(const Backward& b, const RaggedBatch<Space::host>& batch) {
  check_flash_attention(b.dout.shape, {b.q.shape[0], b.q.shape[1]}, b.q.shape, b.k.shape,
                        b.v.shape, batch);
  LAB_CHECK(
      b.dq.shape == b.q.shape && b.dk.shape == b.k.shape && b.dv.shape == b.v.shape,
      "flash_attention_backward: dq is (T={}, H={}, Dh={}), dk is (S={}, K={}, Dh={}) and "
      "dv is (S={}, K={}, Dh={}); give each the shape of q, k and v",
      b.dq.shape[0], b.dq.shape[1], b.dq.shape[2], b.dk.shape[0], b.dk.shape[1],
      b.dk.shape[2], b.dv.shape[0], b.dv.shape[1], b.dv.shape[2]);
  check_ragged_batch(batch, b.q.shape[0], b.k.shape[0]);
}

}  // namespace

// [region definition]
void reference::flash_attention_backward(
    HostView<float, 3> dq, HostView<float, 3> dk, HostView<float, 3> dv,
    HostView<const float, 3> dout, HostView<const float, 3> q, HostView<const float, 3> k,
    HostView<const float, 3> v, const RaggedBatch<Space::host>& batch, float scale,
    AttentionMask mask) {
  check_backward({dq, dk, dv, dout, q, k, v, scale}, batch);
  const std::int64_t n_heads = q.shape[1], head_dim = q.shape[2];
  const std::int64_t n_kv_heads = k.shape[1], heads = n_heads / n_kv_heads;
  const auto dot = [&](const float* a, const float* b) {
    double sum = 0;
    for (std::int64_t d = 0; d < head_dim; ++d) sum += double(a[d]) * double(b[d]);
    return sum;
  };
  std::vector<double> sum_k(std::size_t(k.size())), sum_v(std::size_t(v.size()));
  for (std::int64_t b = 0; b + 1 < batch.query_starts.shape[0]; ++b) {
    const RaggedSequence one(batch, b, mask);
    for (std::int64_t h = 0; h < n_heads; ++h)
      for (std::int64_t t = 0; t < one.n_queries; ++t) {
        const std::int64_t row = one.first_query + t, visible = one.visible(t);
        const auto key = [&](std::int64_t s) {
          return k[one.first_key + s][h / heads].data;
        };
        const auto value = [&](std::int64_t s) {
          return v[one.first_key + s][h / heads].data;
        };
        const float *query = q[row][h].data, *upstream = dout[row][h].data;
        std::vector<double> p(static_cast<std::size_t>(visible)), dp(p.size());
        double largest = -INFINITY, sum = 0, mean = 0;
        for (std::int64_t s = 0; s < visible; ++s)
          largest =
              std::max(largest, p[std::size_t(s)] = double(scale) * dot(query, key(s)));
        for (double& w : p) sum += w = std::exp(w - largest);
        for (std::size_t s = 0; s < p.size(); ++s) {
          p[s] /= sum;
          dp[s] = dot(upstream, value(std::int64_t(s)));
          mean += p[s] * dp[s];
        }
        for (std::int64_t d = 0; d < head_dim; ++d) {
          double of_query = 0;
          for (std::int64_t s = 0; s < visible; ++s) {
            const std::size_t i = std::size_t(s);
            const double ds = p[i] * (dp[i] - mean) * double(scale);
            const auto at = std::size_t(key(s) - k.data + d);
            of_query += ds * double(key(s)[d]);
            sum_k[at] += ds * double(query[d]);
            sum_v[at] += p[i] * double(upstream[d]);
          }
          dq[row][h].data[d] = float(of_query);
        }
      }
  }
  std::transform(sum_k.begin(), sum_k.end(), dk.data, [](double x) { return float(x); });
  std::transform(sum_v.begin(), sum_v.end(), dv.data, [](double x) { return float(x); });
}
// [endregion]

namespace {

constexpr std::int64_t kKeyTile = 64;

/// y += a x, which compilers turn into vector instructions.
void add_scaled(float* __restrict__ y, const float* __restrict__ x, float a,
                std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

/// Up to 64 keys and values of a kv head, as they are and transposed, and the sums of their
/// derivatives: all of it stays in a core's cache while the queries pass by.
struct KeyTile {
  std::int64_t n_keys, head_dim;
  std::vector<float> keys;                // (n_keys, Dh)
  std::vector<float> keys_by, values_by;  // (Dh, kKeyTile)
  std::vector<float> dk, dv;              // (n_keys, Dh)
  float weights[kKeyTile], slopes[kKeyTile];

  KeyTile(const Backward& b, std::int64_t first, std::int64_t n, std::int64_t group)
      : n_keys(n),
        head_dim(b.k.shape[2]),
        keys(std::size_t(n * head_dim)),
        keys_by(std::size_t(kKeyTile * head_dim)),
        values_by(keys_by.size()),
        dk(keys.size()),
        dv(keys.size()) {
    for (std::int64_t s = 0; s < n; ++s) {
      const float *key = b.k[first + s][group].data, *value = b.v[first + s][group].data;
      for (std::int64_t d = 0; d < head_dim; ++d) {
        keys[std::size_t(s * head_dim + d)] = keys_by[std::size_t(d * kKeyTile + s)] =
            key[d];
        values_by[std::size_t(d * kKeyTile + s)] = value[d];
      }
    }
  }

  /// What one query that sees the first `seen` keys adds to all three derivatives.
  /// @param delta  sum of dout * out
  void add(float* dq, const float* q, const float* dout, float lse, float delta,
           float scale, std::int64_t seen) {
    std::fill_n(weights, kKeyTile, 0.0f);
    std::fill_n(slopes, kKeyTile, 0.0f);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      add_scaled(weights, &keys_by[std::size_t(d * kKeyTile)], q[d], seen);
      add_scaled(slopes, &values_by[std::size_t(d * kKeyTile)], dout[d], seen);
    }
    for (std::int64_t s = 0; s < seen; ++s) {
      weights[s] = std::exp(scale * weights[s] - lse);
      slopes[s] = weights[s] * (slopes[s] - delta) * scale;
    }
    for (std::int64_t s = 0; s < seen; ++s) {
      const std::size_t at = std::size_t(s * head_dim);
      add_scaled(&dv[at], dout, weights[s], head_dim);
      add_scaled(&dk[at], q, slopes[s], head_dim);
      add_scaled(dq, &keys[at], slopes[s], head_dim);
    }
  }
};

/// One sequence, one kv head: keys tile by tile, all queries that see any of them.
void backward_group(const Backward& b, const std::vector<float>& delta,
                    HostView<const float, 2> lse, const RaggedSequence& one,
                    std::int64_t group) {
  const std::int64_t n_heads = b.q.shape[1], heads = n_heads / b.k.shape[1],
                     head_dim = b.q.shape[2];
  for (std::int64_t t = 0; t < one.n_queries; ++t)
    std::fill_n(b.dq[one.first_query + t][group * heads].data, heads * head_dim, 0.0f);
  for (std::int64_t first = 0; first < one.n_keys; first += kKeyTile) {
    KeyTile tile(b, one.first_key + first, std::min(kKeyTile, one.n_keys - first), group);
    for (std::int64_t t = one.first_to_see(first); t < one.n_queries; ++t)
      for (std::int64_t h = group * heads; h < (group + 1) * heads; ++h) {
        const std::int64_t row = one.first_query + t;
        tile.add(b.dq[row][h].data, b.q[row][h].data, b.dout[row][h].data, lse[row][h],
                 delta[std::size_t(row * n_heads + h)], b.scale,
                 std::min(tile.n_keys, one.visible(t) - first));
      }
    for (std::int64_t s = 0; s < tile.n_keys; ++s) {
      const std::int64_t key = one.first_key + first + s;
      std::copy_n(&tile.dk[std::size_t(s * head_dim)], head_dim, b.dk[key][group].data);
      std::copy_n(&tile.dv[std::size_t(s * head_dim)], head_dim, b.dv[key][group].data);
    }
  }
}

}  // namespace

void flash_attention_backward(HostView<float, 3> dq, HostView<float, 3> dk,
                              HostView<float, 3> dv, HostView<const float, 3> dout,
                              HostView<const float, 3> q, HostView<const float, 3> k,
                              HostView<const float, 3> v, HostView<const float, 3> out,
                              HostView<const float, 2> lse,
                              const RaggedBatch<Space::host>& batch, float scale,
                              AttentionMask mask) {
  const Backward all{dq, dk, dv, dout, q, k, v, scale};
  check_backward(all, batch);
  check_flash_attention(out.shape, lse.shape, q.shape, k.shape, v.shape, batch);
  const auto [n_tokens, n_heads, head_dim] = q.shape;
  std::vector<float> delta(std::size_t(n_tokens * n_heads));
  for (std::size_t row = 0; row < delta.size(); ++row)
    for (std::int64_t d = 0; d < head_dim; ++d) {
      const std::int64_t at = std::int64_t(row) * head_dim + d;
      delta[row] += dout.data[at] * out.data[at];
    }
  const std::int64_t groups = k.shape[1];
  parallel_for((batch.query_starts.shape[0] - 1) * groups, 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   backward_group(all, delta, lse, RaggedSequence(batch, i / groups, mask),
                                  i % groups);
               });
}

}  // namespace lab::cpu
