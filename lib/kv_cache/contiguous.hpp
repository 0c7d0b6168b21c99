/// @file
/// The KV cache as an array: a fixed place for every position of every sequence.
#pragma once

#include <memory>
#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/core/half.hpp"
#include "lab/model/config.hpp"
#include "lab/model/kv_cache.hpp"

namespace lab {

/// What the keys and values of one token take: 2 L K Dh sizeof(element) bytes.
std::int64_t kv_bytes_per_token(const Config& config, std::int64_t element_bytes);

/// A cache that lives in one piece of memory, (2, L, sequences, capacity, K, Dh).
/// Its sequences are numbered 0 to n_sequences - 1; each is written in order of position.
class ContiguousKvCache : public KvCache {
 public:
  /// @return the number of positions stored for `sequence`
  std::int64_t length(std::int64_t sequence) const;
  /// Forgets the positions from `length` on, as after rejected draft tokens or a new
  /// prompt.
  /// @throws Error if fewer are stored
  void truncate(std::int64_t sequence, std::int64_t length);

  std::int64_t capacity() const { return capacity_; }  ///< positions of each sequence
  virtual std::int64_t bytes() const = 0;              ///< keys and values, all sequences

  void begin(const ForwardBatch& batch) override;

 protected:
  ContiguousKvCache(const Config& config, std::int64_t n_sequences, std::int64_t capacity);

  Config config_;
  std::int64_t capacity_;
  std::vector<std::int64_t> lengths_;    // per sequence
  const ForwardBatch* batch_ = nullptr;  // between begin() and the end of the forward pass
};

/// @param n_sequences  sequences that can be stored at a time
/// @param capacity     positions of each
/// @param dtype        f32, f16 or bf16
/// @throws Error for another dtype or for sizes below 1
std::unique_ptr<ContiguousKvCache> make_contiguous_cache(const Config& config,
                                                         std::int64_t n_sequences,
                                                         std::int64_t capacity,
                                                         DType dtype = DType::f32);

}  // namespace lab
