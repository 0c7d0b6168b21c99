/// @file
/// Blocks behind the scheduler's seam.
#pragma once

#include "lab/batching/kv_space.hpp"
#include "lab/paging/block_manager.hpp"

namespace lab {

/// Admits requests as long as there are blocks: what lets a scheduler of lib/batching run
/// on a BlockManager and a PagedKvCache.
class PagedKvSpace final : public KvSpace {
 public:
  /// @param manager    must outlive it
  /// @param watermark  share of the blocks that admission leaves free while sequences run,
  ///                   so that they can grow a while before one has to be preempted (vLLM:
  ///                   0.01)
  /// @throws Error unless 0 <= watermark < 1
  explicit PagedKvSpace(BlockManager& manager, double watermark = 0.01);

  std::int64_t longest() const override { return total(); }
  std::int64_t total() const override {
    return manager_.n_blocks() * manager_.block_size();
  }
  std::int64_t held() const override {
    return (manager_.n_blocks() - manager_.n_free()) * manager_.block_size();
  }
  std::int64_t cached_prefix(std::span<const std::int32_t> text) const override {
    return manager_.cached_prefix(text);
  }
  std::optional<KvLease> admit(std::span<const std::int32_t> text,
                               std::int64_t n_positions) override;
  bool grow(std::int64_t sequence, std::int64_t n_positions) override {
    return manager_.grow(sequence, n_positions);
  }
  void stored(std::int64_t sequence, std::span<const std::int32_t> text) override {
    manager_.stored(sequence, text);
  }
  void release(std::int64_t sequence) override { manager_.close(sequence); }

 private:
  BlockManager& manager_;
  std::int64_t reserve_;  // blocks
};

}  // namespace lab
