/// @file
/// Exercise 06: attention without its matrix. README.md says how.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// What a query keeps of the keys it has seen so far. Before the first one, `largest` is
/// -infinity and the rest 0.
struct State {
  explicit State(std::size_t head_dim) : values(head_dim) {}
  float largest = kNothing;   ///< m, the largest score so far
  float sum = 0;              ///< of exp(score - largest)
  std::vector<float> values;  ///< (Dh), sum of exp(score - largest) * value
};

/// Task 1. Adds n more keys to what a query has seen.
/// @param scores  (n), scaled; -infinity for a key that the query may not see
/// @param values  (n, Dh)
inline void add_tile(State& state, std::span<const float> scores,
                     std::span<const float> values) {
  // BEGIN SOLUTION
  const std::size_t dim = state.values.size();
  float largest = state.largest;
  for (const float score : scores) largest = std::max(largest, score);
  if (largest == kNothing) return;
  const float rescale = std::exp(state.largest - largest);
  state.largest = largest;
  state.sum *= rescale;
  for (float& value : state.values) value *= rescale;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const float weight = std::exp(scores[i] - largest);
    state.sum += weight;
    for (std::size_t d = 0; d < dim; ++d) state.values[d] += weight * values[i * dim + d];
  }
  // SKELETON
  // throw std::logic_error("exercise 06, task 1: add_tile is not written yet");
  // END SOLUTION
}

/// Attention to some of the keys.
struct Partial {
  std::vector<float> out;  ///< (Dh), 0 where there was no key
  float lse = kNothing;  ///< log of the sum of exp(score); -infinity where there was no key
};

/// Task 1. The result of what has been added.
inline Partial finish(const State& state) {
  // BEGIN SOLUTION
  Partial result{state.values, kNothing};
  if (state.sum == 0) return result;
  for (float& value : result.out) value /= state.sum;
  result.lse = state.largest + std::log(state.sum);
  return result;
  // SKELETON
  // throw std::logic_error("exercise 06, task 1: finish is not written yet");
  // END SOLUTION
}

/// Task 2. Attention to the keys of a and those of b, from the two results alone. Where a
/// part's lse is -infinity, its `out` does not count, whatever it holds.
inline Partial merge(const Partial& a, const Partial& b) {
  // BEGIN SOLUTION
  if (a.lse == kNothing) return b;
  if (b.lse == kNothing) return a;
  const float largest = std::max(a.lse, b.lse);
  const float weight_a = std::exp(a.lse - largest), weight_b = std::exp(b.lse - largest);
  const float sum = weight_a + weight_b;
  Partial result{a.out, largest + std::log(sum)};
  for (std::size_t d = 0; d < a.out.size(); ++d)
    result.out[d] = (weight_a * a.out[d] + weight_b * b.out[d]) / sum;
  return result;
  // SKELETON
  // throw std::logic_error("exercise 06, task 2: merge is not written yet");
  // END SOLUTION
}

/// The numbers of one pass: T queries, the last of a text of S keys.
struct Shape {
  std::size_t n_queries;   ///< T
  std::size_t n_keys;      ///< S
  std::size_t n_heads;     ///< H, query heads
  std::size_t n_kv_heads;  ///< K; H is a multiple of it
  std::size_t head_dim;    ///< Dh
};

/// Task 3. How many keys query t sees, from the first on: the last query sees all, the one
/// before it one fewer, and so on (bottom-right causal).
inline std::size_t visible_keys(std::size_t t, std::size_t n_queries, std::size_t n_keys) {
  // BEGIN SOLUTION
  return n_keys + t + 1 > n_queries ? n_keys + t + 1 - n_queries : 0;
  // SKELETON
  // throw std::logic_error("exercise 06, task 3: visible_keys is not written yet");
  // END SOLUTION
}

/// What task 3 works with: small fast memory for one tile of keys and values, and task 1
/// done right for every query of the block.
class Tiles {
 public:
  virtual ~Tiles() = default;
  /// The most keys that fit.
  virtual std::size_t tile_size() const = 0;
  /// Brings `count` keys of a key/value head, and their values, to where the tile before
  /// them was. @return the keys (count, Dh), until the next call
  virtual std::span<const float> load(std::size_t kv_head, std::size_t first_key,
                                      std::size_t count) = 0;
  /// add_tile with the loaded values.
  /// @param query   of the block, from 0 on
  /// @param scores  one for each loaded key, scaled; -infinity where it is not seen
  virtual void add(std::size_t query, std::size_t head, std::span<const float> scores) = 0;
};

/// Task 3. Attention of a block of n queries, first_query and those behind it, with scale
/// 1 / sqrt(Dh). Each tile is loaded once for all queries of the block and all heads that
/// read it. Tiles that no query of the block sees are not loaded.
/// @param q  (n, H, Dh)
inline void flash_forward(Tiles& tiles, std::span<const float> q, std::size_t first_query,
                          const Shape& shape) {
  // BEGIN SOLUTION
  const std::size_t dim = shape.head_dim, group = shape.n_heads / shape.n_kv_heads;
  const std::size_t n = q.size() / (shape.n_heads * dim);
  const float scale = 1 / std::sqrt(float(dim));
  const auto visible = [&](std::size_t query) {
    const std::size_t seen = shape.n_keys + first_query + query + 1;
    return seen > shape.n_queries ? seen - shape.n_queries : 0;
  };
  std::vector<float> scores;
  for (std::size_t kv_head = 0; kv_head < shape.n_kv_heads; ++kv_head)
    for (std::size_t first = 0; first < visible(n - 1); first += tiles.tile_size()) {
      const std::size_t count = std::min(tiles.tile_size(), visible(n - 1) - first);
      const std::span<const float> keys = tiles.load(kv_head, first, count);
      for (std::size_t query = 0; query < n; ++query)
        for (std::size_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          scores.assign(count, kNothing);
          for (std::size_t i = 0; i < count && first + i < visible(query); ++i) {
            scores[i] = 0;
            for (std::size_t d = 0; d < dim; ++d)
              scores[i] += q[(query * shape.n_heads + h) * dim + d] * keys[i * dim + d];
            scores[i] *= scale;
          }
          tiles.add(query, h, scores);
        }
    }
  // SKELETON
  // throw std::logic_error("exercise 06, task 3: flash_forward is not written yet");
  // END SOLUTION
}

/// Attention of the query to `count` keys from `first` on; count >= 1.
using Attend = std::function<Partial(std::size_t first, std::size_t count)>;
/// Task 2 done right.
using Merge = std::function<Partial(const Partial&, const Partial&)>;

/// Task 4. Attention of one query to all keys, in up to n_parts parts that differ by at
/// most one key: as many processors can then work on one query. A part without keys is left
/// out.
inline Partial decode_split(std::size_t n_keys, std::size_t n_parts, const Attend& attend,
                            const Merge& merge_parts) {
  // BEGIN SOLUTION
  Partial result;
  for (std::size_t part = 0; part < n_parts; ++part) {
    const std::size_t first = part * n_keys / n_parts;
    const std::size_t last = (part + 1) * n_keys / n_parts;
    if (last > first) result = merge_parts(result, attend(first, last - first));
  }
  return result;
  // SKELETON
  // throw std::logic_error("exercise 06, task 4: decode_split is not written yet");
  // END SOLUTION
}

/// Task 5. Derivatives of a loss by one query, and by the keys and values that it sees,
/// given that by its output. The weights were not kept: they are computed again from the
/// lse. No array of S numbers is needed.
/// @param[out]    dq     (Dh)
/// @param[in,out] dk,dv  (S, Dh): this query's part is added to what is there
/// @param[in]     dout   (Dh), the derivative by the output
/// @param[in]     q      (Dh)
/// @param[in]     k,v    (S, Dh), the keys and values that the query sees
/// @param[in]     state  what the forward pass gave: out (Dh) and lse
/// @param[in]     scale  what q . k was multiplied by
inline void backward_row(std::span<float> dq, std::span<float> dk, std::span<float> dv,
                         std::span<const float> dout, std::span<const float> q,
                         std::span<const float> k, std::span<const float> v,
                         const Partial& state, float scale) {
  // BEGIN SOLUTION
  const std::size_t dim = q.size();
  const auto dot = [dim](std::span<const float> a, std::span<const float> b) {
    float sum = 0;
    for (std::size_t d = 0; d < dim; ++d) sum += a[d] * b[d];
    return sum;
  };
  const float delta = dot(dout, state.out);
  std::fill(dq.begin(), dq.end(), 0.0f);
  for (std::size_t s = 0; s < k.size() / dim; ++s) {
    const std::span<const float> key = k.subspan(s * dim, dim);
    const float weight = std::exp(scale * dot(q, key) - state.lse);
    const float dscore = weight * (dot(dout, v.subspan(s * dim, dim)) - delta);
    for (std::size_t d = 0; d < dim; ++d) {
      dq[d] += scale * dscore * key[d];
      dk[s * dim + d] += scale * dscore * q[d];
      dv[s * dim + d] += weight * dout[d];
    }
  }
  // SKELETON
  // throw std::logic_error("exercise 06, task 5: backward_row is not written yet");
  // END SOLUTION
}

}  // namespace exercise
