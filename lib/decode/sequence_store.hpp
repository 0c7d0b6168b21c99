/// @file
/// The seam behind which several answers to one prompt share what they have in common.
#pragma once

#include <cstdint>
#include <span>

#include "lab/model/kv_cache.hpp"

namespace lab {

/// A KV cache whose sequences can be forked. Paging implements it (chapter 05).
class SequenceStore {
 public:
  SequenceStore() = default;
  SequenceStore(const SequenceStore&) = delete;
  SequenceStore& operator=(const SequenceStore&) = delete;
  virtual ~SequenceStore() = default;

  /// What the model reads and writes.
  virtual KvCache& cache() = 0;
  /// Starts a sequence for `text`. @return its number in the cache
  /// @throws Error if there is no room
  virtual std::int64_t open(std::span<const std::int32_t> text) = 0;
  /// Positions whose keys and values are stored.
  virtual std::int64_t length(std::int64_t sequence) const = 0;
  /// Makes room for positions up to n_positions, which are about to be written.
  /// @throws Error if there is none
  virtual void grow(std::int64_t sequence, std::int64_t n_positions) = 0;
  /// After a forward pass: keys and values of `text` are stored.
  virtual void stored(std::int64_t sequence, std::span<const std::int32_t> text) = 0;
  /// A sequence that goes on from where `sequence` is. Its length may be smaller: the rest
  /// is then to be computed again.
  virtual std::int64_t fork(std::int64_t sequence) = 0;
  /// Ends a sequence.
  virtual void close(std::int64_t sequence) = 0;
};

}  // namespace lab
