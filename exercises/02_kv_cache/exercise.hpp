/// @file
/// Exercise 02: a KV cache, and a decode step that uses it. README.md says how.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

/// Task 1. The keys and values of one sequence in one layer: a row of K * Dh numbers for
/// each position, in two arrays of shape (capacity, K, Dh).
class KvCache {
 public:
  KvCache(std::size_t capacity, std::size_t n_kv_heads, std::size_t head_dim)
      : capacity_(capacity),
        n_kv_heads_(n_kv_heads),
        head_dim_(head_dim),
        k_(capacity * n_kv_heads * head_dim),
        v_(capacity * n_kv_heads * head_dim) {}

  std::size_t length() const { return length_; }  ///< positions stored so far
  /// Everything stored, (length, K, Dh).
  std::span<const float> keys() const { return stored(k_); }
  std::span<const float> values() const { return stored(v_); }

  /// Stores the keys and values of the next T tokens, behind those that are there.
  /// @param k,v  (T, K, Dh), T >= 1
  /// @throws std::length_error if the rows do not fit; the cache then stays as it was
  void append(std::span<const float> k, std::span<const float> v) {
    // Your code here.
    throw std::logic_error("exercise 02, task 1: KvCache::append is not written yet");
  }

  /// The key of one position and head, (Dh).
  /// @throws std::out_of_range if nothing is stored there
  std::span<const float> key(std::size_t position, std::size_t head) const {
    // Your code here.
    throw std::logic_error("exercise 02, task 1: KvCache::key is not written yet");
  }

  /// Forgets the positions from `length` on, as after rejected draft tokens.
  /// @throws std::out_of_range if fewer are stored
  void truncate(std::size_t length) {
    // Your code here.
    throw std::logic_error("exercise 02, task 1: KvCache::truncate is not written yet");
  }

 private:
  std::span<const float> stored(const std::vector<float>& array) const {
    return std::span(array).first(length_ * n_kv_heads_ * head_dim_);
  }

  std::size_t capacity_, n_kv_heads_, head_dim_;
  std::size_t length_ = 0;
  std::vector<float> k_, v_;  // (capacity, K, Dh)
};

/// Task 2. Rotary position embedding of the newest tokens of a text: turns the pair
/// (x[2i], x[2i+1]) of every head by the angle p * base^(-2i / Dh), where p is the token's
/// position in the whole text.
/// @param x               (T, H, Dh), Dh even; turned in place
/// @param first_position  the position of the first of the T tokens: how many came before
inline void rope(std::span<float> x, std::size_t n_heads, std::size_t head_dim,
                 std::size_t first_position, double base) {
  // Your code here.
  throw std::logic_error("exercise 02, task 2: rope is not written yet");
}

/// The numbers of a model that its cache depends on.
struct ModelShape {
  std::uint64_t n_layers;    ///< L
  std::uint64_t n_heads;     ///< H, query heads
  std::uint64_t n_kv_heads;  ///< K: H for MHA, 1 for MQA, between them for GQA
  std::uint64_t head_dim;    ///< Dh
};

/// Task 3. What the cache takes for one token, in bytes.
/// @param element_bytes  4 for f32, 2 for f16 and bf16, 1 for int8
inline std::uint64_t kv_bytes_per_token(const ModelShape& model,
                                        std::uint64_t element_bytes) {
  // Your code here.
  throw std::logic_error("exercise 02, task 3: kv_bytes_per_token is not written yet");
}

/// Task 3. The longest context for which the weights and the caches of all sequences fit.
/// @param token_bytes   what the cache takes for one token
/// @param memory_bytes  what the device has
/// @param weight_bytes  what the model's weights take
/// @param n_sequences   sequences at a time, each with a cache of its own; at least 1
/// @return tokens for each sequence; 0 if not even the weights fit
inline std::uint64_t longest_context(std::uint64_t token_bytes, std::uint64_t memory_bytes,
                                     std::uint64_t weight_bytes,
                                     std::uint64_t n_sequences) {
  // Your code here.
  throw std::logic_error("exercise 02, task 3: longest_context is not written yet");
}

/// What task 4 works with: a cache, RoPE and attention that are known to be right, so that
/// it does not depend on tasks 1 and 2.
class Layer {
 public:
  virtual ~Layer() = default;
  /// Positions that the cache holds.
  virtual std::size_t cached() const = 0;
  /// Turns x (T, n_heads, Dh); its first token stands at `first_position`.
  virtual void rope(std::span<float> x, std::size_t n_heads,
                    std::size_t first_position) = 0;
  /// Stores k and v (T, K, Dh) behind what the cache holds.
  virtual void append(std::span<const float> k, std::span<const float> v) = 0;
  /// Causal attention of the queries q (T, H, Dh), the last T positions of what the cache
  /// holds. @return (T, H, Dh)
  virtual std::vector<float> attend(std::span<const float> q) = 0;
};

/// Task 4. Attention of one layer for the next T tokens of a text, which may be a whole
/// prompt or one new token: the result must be what a pass over the whole text gives for
/// them.
/// @param q    (T, H, Dh), not yet turned
/// @param k,v  (T, K, Dh), not yet turned
/// @return (T, H, Dh)
inline std::vector<float> decode_step(Layer& layer, std::vector<float> q,
                                      std::vector<float> k, std::vector<float> v,
                                      std::size_t n_heads, std::size_t n_kv_heads) {
  // Your code here.
  throw std::logic_error("exercise 02, task 4: decode_step is not written yet");
}

}  // namespace exercise
