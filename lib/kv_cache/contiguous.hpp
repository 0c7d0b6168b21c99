/// @file
/// The KV cache as an array: a fixed place for every position of every sequence.
#pragma once

#include <memory>
#include <vector>

#include "lab/model/config.hpp"
#include "lab/model/kv_cache.hpp"
#include "lab/model/transformer.hpp"

namespace lab {

/// What the keys and values of one token take: 2 L K Dh sizeof(element) bytes.
std::int64_t kv_bytes_per_token(const Config& config, std::int64_t element_bytes);

/// A cache that lives in one piece of memory, (2, L, sequences, capacity, K, Dh).
/// Its sequences are numbered 0 to n_sequences - 1; each is written in order of position.
class ContiguousKvCache final : public KvCache {
 public:
  /// @param n_sequences  sequences that can be stored at a time
  /// @param capacity     positions of each
  /// @param dtype        f32, f16 or bf16
  /// @throws Error for another dtype or for sizes below 1
  ContiguousKvCache(const Config& config, std::int64_t n_sequences, std::int64_t capacity,
                    DType dtype, Device& device);

  /// @return the number of positions stored for `sequence`
  std::int64_t length(std::int64_t sequence) const;
  /// Forgets the positions from `length` on, as after rejected draft tokens or a new
  /// prompt.
  /// @throws Error if fewer are stored
  void truncate(std::int64_t sequence, std::int64_t length);

  std::int64_t capacity() const { return capacity_; }  ///< positions of each sequence
  /// Keys and values of all sequences.
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size()); }

  void begin(const DeviceBatch& batch) override;
  void append(std::int64_t layer, DeviceView<const float, 3> k,
              DeviceView<const float, 3> v) override;
  void attend(std::int64_t layer, DeviceView<float, 3> out, DeviceView<const float, 3> q,
              float scale) override;

 private:
  enum Part { kKeys, kValues };
  KvBlocks layer(Part part, std::int64_t layer) const;
  KvView positions(Part part, std::int64_t layer, std::int64_t sequence) const;

  Config config_;
  std::int64_t capacity_;
  DType dtype_;
  Device& device_;
  DeviceBuffer memory_;                 // (2, L, sequences, capacity, K, Dh)
  std::vector<std::int64_t> lengths_;   // per sequence
  const DeviceBatch* batch_ = nullptr;  // between begin() and the end of the forward pass
};

/// A cache on this CPU, or on the `device` given. Parameters as of the constructor.
std::unique_ptr<ContiguousKvCache> make_contiguous_cache(const Config& config,
                                                         std::int64_t n_sequences,
                                                         std::int64_t capacity,
                                                         DType dtype = DType::f32,
                                                         Device& device = cpu_device());
/// A cache where the model runs.
std::unique_ptr<ContiguousKvCache> make_contiguous_cache(const Transformer& transformer,
                                                         std::int64_t n_sequences,
                                                         std::int64_t capacity,
                                                         DType dtype = DType::f32);

}  // namespace lab
