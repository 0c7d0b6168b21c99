/// @file
/// Which block belongs to whom: block tables, sharing, copy-on-write, prefix hits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lab/paging/block_pool.hpp"
#include "lab/paging/paged_kv_cache.hpp"
#include "lab/paging/prefix_cache.hpp"

namespace lab {

/// What a fork does with its parent's last block, if that is not full.
enum class ForkMode {
  /// Shares it. Whoever writes to it first copies it (Kwon et al. 2023, section 4.4).
  copy_on_write,
  /// Does not share it: full blocks are never written again, so nothing is ever copied, and
  /// the fork computes the tokens of the last block itself (as vLLM's V1 engine).
  append_only
};

/// Settings of a BlockManager.
struct BlockManagerConfig {
  std::int64_t n_blocks = 64;
  std::int64_t block_size = 16;  ///< positions
  bool prefix_caching = true;
  ForkMode fork_mode = ForkMode::copy_on_write;
  BlockHash hash = chained_block_hash;
};

/// How well the blocks are used.
struct BlockUsage {
  std::int64_t blocks = 0;            ///< with an owner
  std::int64_t owners = 0;            ///< blocks that there would be without sharing
  std::int64_t room = 0, stored = 0;  ///< positions in them, and filled; shared count once

  /// Share of the positions given out that hold nothing.
  double waste() const { return room ? 1 - double(stored) / double(room) : 0; }
  /// Share of the blocks that sharing saves (Kwon et al. 2023, section 6.3).
  double saving() const { return owners ? 1 - double(blocks) / double(owners) : 0; }
};

/// Sequences as lists of blocks. A block that several sequences share is never written to.
class BlockManager final : public BlockTables {
 public:
  /// @throws Error for sizes below 1
  explicit BlockManager(const BlockManagerConfig& config);

  std::int64_t n_blocks() const override { return pool_.n_blocks(); }
  std::int64_t block_size() const override { return config_.block_size; }
  std::span<const std::int32_t> blocks(std::int64_t sequence) const override;
  std::int64_t length(std::int64_t sequence) const override;

  /// @return how many first positions of `text` open() would find cached: whole blocks, and
  ///         not the last token, whose logits are wanted
  std::int64_t cached_prefix(std::span<const std::int32_t> text,
                             std::uint64_t salt = 0) const;
  /// Starts a sequence with room for n_positions; its length is what was found cached.
  /// @return its number, the lowest that is free; nothing, and nothing has changed, if
  /// there
  ///         are not enough blocks
  std::optional<std::int64_t> open(std::span<const std::int32_t> text,
                                   std::int64_t n_positions, std::uint64_t salt = 0);
  /// Makes room for positions up to n_positions, and makes those from length() on the
  /// sequence's own: a shared block among them is replaced, see take_copies().
  /// @return false, and nothing has changed, if there are not enough blocks
  bool grow(std::int64_t sequence, std::int64_t n_positions);
  /// Blocks whose rows must be copied before the next forward pass, in this order.
  std::vector<BlockCopy> take_copies() { return std::exchange(copies_, {}); }

  /// Keys and values of `text` are stored now. Whole blocks can be found from now on.
  /// @throws Error if the sequence has no room for it
  void stored(std::int64_t sequence, std::span<const std::int32_t> text);
  /// Forgets positions from `length` on, and gives blocks behind them back.
  /// @throws Error if fewer are stored
  void truncate(std::int64_t sequence, std::int64_t length);
  /// A sequence that goes on from where `sequence` is. In append_only mode its length is
  /// that of the full blocks.
  std::int64_t fork(std::int64_t sequence);
  /// Ends a sequence and gives its blocks back, last ones first: of what may be found again
  /// later, ends of texts are given up before beginnings.
  /// @throws Error if there is no such sequence
  void close(std::int64_t sequence);

  std::int64_t n_free() const { return pool_.n_free(); }
  std::int64_t n_sequences() const { return std::ssize(sequences_); }
  std::int64_t n_cached() const { return cache_.size(); }  ///< blocks that can be found
  BlockUsage usage() const;
  const BlockPool& pool() const { return pool_; }

 private:
  struct Sequence {
    std::vector<std::int32_t> blocks;
    std::int64_t length = 0;
    std::uint64_t salt = 0;
  };
  const Sequence& get(std::int64_t sequence) const;
  Sequence& get(std::int64_t sequence);
  std::int64_t add(Sequence sequence);
  std::int64_t blocks_for(std::int64_t n_positions) const;
  std::int32_t take_block();
  void give_back(std::int32_t block);
  void copy_before_write(Sequence& s);

  BlockManagerConfig config_;
  BlockPool pool_;
  PrefixCache cache_;
  std::map<std::int64_t, Sequence> sequences_;
  std::set<std::int64_t> free_numbers_;  // below sequences_'s largest
  std::vector<BlockCopy> copies_;
};

}  // namespace lab
