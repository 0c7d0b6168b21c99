/// @file
/// Exercise 05: a KV cache in blocks. README.md says how.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace exercise {

using Block = std::size_t;  ///< the number of a block in the pool
/// What stands for "no block": before the first block of a text.
inline constexpr Block kNoBlock = static_cast<Block>(-1);

/// Task 1. Which blocks are in use, and by how many sequences each.
class Pool {
 public:
  explicit Pool(std::size_t n_blocks) : ref_count_(n_blocks) {
    for (Block b = n_blocks; b-- > 0;) free_.push_back(b);
  }

  std::size_t n_free() const { return free_.size(); }
  std::size_t ref_count(Block block) const { return ref_count_.at(block); }

  /// Takes the last block of `free_`; one sequence refers to it from now on.
  /// @throws std::length_error if no block is free
  Block allocate() {
    // Your code here.
    throw std::logic_error("exercise 05, task 1: Pool::allocate is not written yet");
  }

  /// One more sequence refers to the block.
  /// @throws std::invalid_argument if the block is free
  void share(Block block) {
    // Your code here.
    throw std::logic_error("exercise 05, task 1: Pool::share is not written yet");
  }

  /// One sequence fewer refers to the block; after the last one it is free.
  /// @throws std::invalid_argument if it is free already
  void release(Block block) {
    // Your code here.
    throw std::logic_error("exercise 05, task 1: Pool::release is not written yet");
  }

 private:
  std::vector<std::size_t> ref_count_;  // (n_blocks), 0 where the block is free
  std::vector<Block> free_;             // in any order
};

/// Task 2. How many blocks hold `n_tokens` positions.
inline std::size_t blocks_needed(std::size_t n_tokens, std::size_t block_size) {
  // Your code here.
  throw std::logic_error("exercise 05, task 2: blocks_needed is not written yet");
}

/// Task 2. The row of the pool's arrays where a position of a sequence is kept.
/// @param table  the sequence's blocks, in the order of its text
/// @throws std::out_of_range if the table has no block for the position
inline std::size_t slot_of(std::span<const Block> table, std::size_t position,
                           std::size_t block_size) {
  // Your code here.
  throw std::logic_error("exercise 05, task 2: slot_of is not written yet");
}

/// What task 3 works with: a pool and its memory, which are known to be right.
class Blocks {
 public:
  virtual ~Blocks() = default;
  virtual std::size_t block_size() const = 0;
  /// As in task 1.
  virtual Block allocate() = 0;
  virtual void share(Block block) = 0;
  virtual void release(Block block) = 0;
  virtual std::size_t ref_count(Block block) const = 0;
  /// Copies all rows of a block to another.
  virtual void copy(Block from, Block to) = 0;
  /// Stores the key and the value of one token in row `offset` of a block.
  virtual void write(Block block, std::size_t offset, std::span<const float> k,
                     std::span<const float> v) = 0;
};

/// Where one sequence is kept: blocks_needed(length) blocks.
struct Sequence {
  std::vector<Block> table;
  std::size_t length = 0;  ///< positions stored so far
};

/// Task 3. A second sequence with the same past. Nothing is copied: both refer to all
/// blocks.
inline Sequence branch(Blocks& blocks, const Sequence& parent) {
  // Your code here.
  throw std::logic_error("exercise 05, task 3: branch is not written yet");
}

/// Task 3. Stores the next token of a sequence. Where another sequence refers to the last
/// block too, this one gets a copy of it first (copy-on-write).
/// @throws std::length_error what allocate throws; nothing has changed then
inline void append(Blocks& blocks, Sequence& sequence, std::span<const float> k,
                   std::span<const float> v) {
  // Your code here.
  throw std::logic_error("exercise 05, task 3: append is not written yet");
}

/// Task 3. Forgets the positions from `length` on and gives up the blocks that held nothing
/// else. Length 0 ends the sequence.
inline void truncate(Blocks& blocks, Sequence& sequence, std::size_t length) {
  // Your code here.
  throw std::logic_error("exercise 05, task 3: truncate is not written yet");
}

/// The numbers that attention through a table depends on.
struct PagedShape {
  std::size_t n_heads;     ///< H, query heads
  std::size_t n_kv_heads;  ///< K; H is a multiple of it
  std::size_t head_dim;    ///< Dh
  std::size_t block_size;  ///< positions in a block
};

/// Task 4. Attention of one query token over a sequence in blocks, with scale 1 / sqrt(Dh).
/// @param q       (H, Dh)
/// @param k,v     the whole pool, (n_blocks * block_size, K, Dh); rows that nobody wrote
/// may
///                hold anything, even NaN
/// @param table   the sequence's blocks; it may have more than the length needs
/// @param kv_len  positions to look at, at least 1
/// @return (H, Dh)
inline std::vector<float> paged_attention(std::span<const float> q,
                                          std::span<const float> k,
                                          std::span<const float> v,
                                          std::span<const Block> table, std::size_t kv_len,
                                          const PagedShape& shape) {
  // Your code here.
  throw std::logic_error("exercise 05, task 4: paged_attention is not written yet");
}

using Token = std::int32_t;
/// A hash of a block's tokens and of the hash of the block before it.
using Hash = std::function<std::uint64_t(std::uint64_t parent, std::span<const Token>)>;
/// What stands for the hash before the first block.
inline constexpr std::uint64_t kRoot = 0;

/// Task 5. The hash of each full block of a text, each with that of the block before it.
inline std::vector<std::uint64_t> block_hashes(std::span<const Token> text,
                                               std::size_t block_size, const Hash& hash) {
  // Your code here.
  throw std::logic_error("exercise 05, task 5: block_hashes is not written yet");
}

/// What a prefix cache remembers of one block.
struct CachedBlock {
  Block block;                ///< where its keys and values are
  Block parent;               ///< the block before it, kNoBlock for a first one
  std::vector<Token> tokens;  ///< (block_size)
};

/// Task 5. The cached blocks that a new text can start with. Two texts may have the same
/// hash, so each hit is verified: its tokens and its parent are compared. The last token of
/// the text is always left to compute, since its logits are needed.
/// @param hashes  what block_hashes gives for the text
/// @param cache   by hash
/// @return the blocks, from the first of the text on
inline std::vector<Block> cached_prefix(
    std::span<const Token> text, std::span<const std::uint64_t> hashes,
    std::size_t block_size, const std::unordered_map<std::uint64_t, CachedBlock>& cache) {
  // Your code here.
  throw std::logic_error("exercise 05, task 5: cached_prefix is not written yet");
}

}  // namespace exercise
