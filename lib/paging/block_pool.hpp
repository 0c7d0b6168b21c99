/// @file
/// Blocks with reference counts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lab {

/// A fixed number of blocks. Each is free, or has one or more owners. Free blocks stand in
/// a queue, least recently freed first, and are given out from its head: a freed block
/// keeps what it holds as long as possible, so that the prefix cache may revive it.
///
/// Every operation takes constant time: the queue is a doubly linked list through the
/// blocks' own numbers (as vLLM's FreeKVCacheBlockQueue).
class BlockPool {
 public:
  /// @throws Error if n_blocks is below 1
  explicit BlockPool(std::int64_t n_blocks);

  std::int64_t n_blocks() const { return std::int64_t(references_.size()); }
  std::int64_t n_free() const { return n_free_; }
  /// @return owners of a block; 0: it is free
  /// @throws Error if there is no such block
  std::int64_t references(std::int32_t block) const;

  /// The block that allocate() would give, if there is one.
  std::optional<std::int32_t> next_free() const;
  /// Gives the head of the queue its first owner.
  /// @return nothing if no block is free
  std::optional<std::int32_t> allocate();
  /// Adds an owner. A free block leaves the queue: it is revived with what it holds.
  void share(std::int32_t block);
  /// Takes an owner away. @return whether that was the last one, and the block is free now
  /// @param keep  whether it may be wanted again: it goes to the end of the queue. A block
  ///              that holds nothing of use goes to the head
  /// @throws Error if it is free: nothing is freed twice
  bool release(std::int32_t block, bool keep);

 private:
  void check(std::int32_t block) const;
  void link(std::int32_t block, std::int32_t before);
  void unlink(std::int32_t block);

  // Index n_blocks is the queue's both ends.
  std::vector<std::int32_t> next_, previous_;
  std::vector<std::int32_t> references_;
  std::int64_t n_free_ = 0;
};

}  // namespace lab
