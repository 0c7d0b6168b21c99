/// @file
/// What a scheduler has to know about the memory for keys and values, and no more.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "lab/kv_cache/contiguous.hpp"

namespace lab {

/// A sequence that has been let into the KV cache.
struct KvLease {
  std::int64_t sequence = 0;  ///< its number in the KvCache, until it is released
  std::int64_t cached = 0;    ///< positions whose keys and values are there already
};

/// The seam between scheduling and memory: slots here, a pool of blocks with shared
/// prefixes in chapter 05. It counts positions; a KvCache holds the numbers themselves.
class KvSpace {
 public:
  KvSpace() = default;
  KvSpace(const KvSpace&) = delete;
  KvSpace& operator=(const KvSpace&) = delete;
  virtual ~KvSpace() = default;

  /// Positions a sequence can have if it is alone. One that needs more can never run.
  virtual std::int64_t longest() const = 0;
  virtual std::int64_t total() const = 0;  ///< positions, of all sequences together
  virtual std::int64_t held() const = 0;   ///< positions that admitted sequences hold

  /// @return how many first tokens of `text` admit() would find cached; less than its
  ///         length, because the last token's logits are wanted
  virtual std::int64_t cached_prefix(std::span<const std::int32_t> text) const;

  /// Lets a sequence in and makes room for its first `n_positions`, at least as many as
  /// `text` has.
  /// @return nothing, and nothing has changed, if there is no room
  virtual std::optional<KvLease> admit(std::span<const std::int32_t> text,
                                       std::int64_t n_positions) = 0;

  /// Makes room for positions [0, n_positions) of an admitted sequence.
  /// @return false, and nothing has changed, if there is no room
  virtual bool grow(std::int64_t sequence, std::int64_t n_positions) = 0;

  /// Called after a forward pass: the keys and values of `text` are stored now, so that
  /// others may share them.
  virtual void stored(std::int64_t sequence, std::span<const std::int32_t> text);

  /// Gives back everything the sequence holds.
  /// @throws Error if it is not admitted: nothing may be freed twice
  virtual void release(std::int64_t sequence) = 0;
};

/// Slots of a fixed number of positions: each sequence holds a whole one, used or not.
class SlotKvSpace final : public KvSpace {
 public:
  /// @param cache  the cache whose sequences 0 to n_slots - 1 are the slots, so that a slot
  ///               is empty when it is given out again; null if no model runs
  /// @throws Error if a size is below 1, or the cache's capacity is smaller
  SlotKvSpace(std::int64_t n_slots, std::int64_t capacity,
              ContiguousKvCache* cache = nullptr);

  std::int64_t longest() const override { return capacity_; }
  std::int64_t total() const override { return n_slots_ * capacity_; }
  std::int64_t held() const override;
  std::optional<KvLease> admit(std::span<const std::int32_t> text,
                               std::int64_t n_positions) override;
  bool grow(std::int64_t sequence, std::int64_t n_positions) override;
  void release(std::int64_t sequence) override;

 private:
  std::int64_t n_slots_, capacity_;
  ContiguousKvCache* cache_;
  std::set<std::int64_t> free_;  // the lowest number goes first
};

/// A pool of positions that any sequence may hold: what paging comes to if its blocks hold
/// one token. It counts only, and serves virtual-time experiments.
class PooledKvSpace final : public KvSpace {
 public:
  /// @throws Error if `n_positions` is below 1
  explicit PooledKvSpace(std::int64_t n_positions);

  std::int64_t longest() const override { return total_; }
  std::int64_t total() const override { return total_; }
  std::int64_t held() const override { return held_; }
  std::optional<KvLease> admit(std::span<const std::int32_t> text,
                               std::int64_t n_positions) override;
  bool grow(std::int64_t sequence, std::int64_t n_positions) override;
  void release(std::int64_t sequence) override;

 private:
  std::int64_t total_, held_ = 0;
  std::unordered_map<std::int64_t, std::int64_t> sizes_;  // positions held by a sequence
  std::set<std::int64_t> free_numbers_;                   // below sizes_'s largest
};

}  // namespace lab
