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
    // BEGIN SOLUTION
    if (free_.empty()) throw std::length_error("no block is free");
    const Block block = free_.back();
    free_.pop_back();
    ref_count_[block] = 1;
    return block;
    // SKELETON
    // throw std::logic_error("exercise 05, task 1: Pool::allocate is not written yet");
    // END SOLUTION
  }

  /// One more sequence refers to the block.
  /// @throws std::invalid_argument if the block is free
  void share(Block block) {
    // BEGIN SOLUTION
    if (ref_count_.at(block) == 0) throw std::invalid_argument("a free block is shared");
    ++ref_count_[block];
    // SKELETON
    // throw std::logic_error("exercise 05, task 1: Pool::share is not written yet");
    // END SOLUTION
  }

  /// One sequence fewer refers to the block; after the last one it is free.
  /// @throws std::invalid_argument if it is free already
  void release(Block block) {
    // BEGIN SOLUTION
    if (ref_count_.at(block) == 0) throw std::invalid_argument("a free block is released");
    if (--ref_count_[block] == 0) free_.push_back(block);
    // SKELETON
    // throw std::logic_error("exercise 05, task 1: Pool::release is not written yet");
    // END SOLUTION
  }

 private:
  std::vector<std::size_t> ref_count_;  // (n_blocks), 0 where the block is free
  std::vector<Block> free_;             // in any order
};

/// Task 2. How many blocks hold `n_tokens` positions.
inline std::size_t blocks_needed(std::size_t n_tokens, std::size_t block_size) {
  // BEGIN SOLUTION
  return (n_tokens + block_size - 1) / block_size;
  // SKELETON
  // throw std::logic_error("exercise 05, task 2: blocks_needed is not written yet");
  // END SOLUTION
}

/// Task 2. The row of the pool's arrays where a position of a sequence is kept.
/// @param table  the sequence's blocks, in the order of its text
/// @throws std::out_of_range if the table has no block for the position
inline std::size_t slot_of(std::span<const Block> table, std::size_t position,
                           std::size_t block_size) {
  // BEGIN SOLUTION
  const std::size_t index = position / block_size;
  if (index >= table.size()) throw std::out_of_range("the table has no block for that");
  return table[index] * block_size + position % block_size;
  // SKELETON
  // throw std::logic_error("exercise 05, task 2: slot_of is not written yet");
  // END SOLUTION
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
  // BEGIN SOLUTION
  for (const Block block : parent.table) blocks.share(block);
  return parent;
  // SKELETON
  // throw std::logic_error("exercise 05, task 3: branch is not written yet");
  // END SOLUTION
}

/// Task 3. Stores the next token of a sequence. Where another sequence refers to the last
/// block too, this one gets a copy of it first (copy-on-write).
/// @throws std::length_error what allocate throws; nothing has changed then
inline void append(Blocks& blocks, Sequence& sequence, std::span<const float> k,
                   std::span<const float> v) {
  // BEGIN SOLUTION
  const std::size_t offset = sequence.length % blocks.block_size();
  if (offset == 0) {
    sequence.table.push_back(blocks.allocate());
  } else if (const Block old = sequence.table.back(); blocks.ref_count(old) > 1) {
    const Block own = blocks.allocate();
    blocks.copy(old, own);
    blocks.release(old);
    sequence.table.back() = own;
  }
  blocks.write(sequence.table.back(), offset, k, v);
  ++sequence.length;
  // SKELETON
  // throw std::logic_error("exercise 05, task 3: append is not written yet");
  // END SOLUTION
}

/// Task 3. Forgets the positions from `length` on and gives up the blocks that held nothing
/// else. Length 0 ends the sequence.
inline void truncate(Blocks& blocks, Sequence& sequence, std::size_t length) {
  // BEGIN SOLUTION
  const std::size_t keep = (length + blocks.block_size() - 1) / blocks.block_size();
  while (sequence.table.size() > keep) {
    blocks.release(sequence.table.back());
    sequence.table.pop_back();
  }
  sequence.length = length;
  // SKELETON
  // throw std::logic_error("exercise 05, task 3: truncate is not written yet");
  // END SOLUTION
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
  // BEGIN SOLUTION
  const std::size_t dim = shape.head_dim, kv_heads = shape.n_kv_heads;
  const double scale = 1 / std::sqrt(double(dim));
  std::vector<float> out(q.size());
  std::vector<double> weights(kv_len), sum(dim);
  for (std::size_t h = 0; h < shape.n_heads; ++h) {
    const std::size_t kv_head = h / (shape.n_heads / kv_heads);
    const auto row_of = [&](std::size_t s) {
      const std::size_t bs = shape.block_size, slot = table[s / bs] * bs + s % bs;
      return (slot * kv_heads + kv_head) * dim;
    };
    double largest = -INFINITY, total = 0;
    for (std::size_t s = 0; s < kv_len; ++s) {
      double dot = 0;
      for (std::size_t d = 0; d < dim; ++d)
        dot += double(q[h * dim + d]) * double(k[row_of(s) + d]);
      weights[s] = scale * dot;
      largest = std::max(largest, weights[s]);
    }
    for (double& weight : weights) total += weight = std::exp(weight - largest);
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t s = 0; s < kv_len; ++s)
      for (std::size_t d = 0; d < dim; ++d) sum[d] += weights[s] * double(v[row_of(s) + d]);
    for (std::size_t d = 0; d < dim; ++d) out[h * dim + d] = float(sum[d] / total);
  }
  return out;
  // SKELETON
  // throw std::logic_error("exercise 05, task 4: paged_attention is not written yet");
  // END SOLUTION
}

using Token = std::int32_t;
/// A hash of a block's tokens and of the hash of the block before it.
using Hash = std::function<std::uint64_t(std::uint64_t parent, std::span<const Token>)>;
/// What stands for the hash before the first block.
inline constexpr std::uint64_t kRoot = 0;

/// Task 5. The hash of each full block of a text, each with that of the block before it.
inline std::vector<std::uint64_t> block_hashes(std::span<const Token> text,
                                               std::size_t block_size, const Hash& hash) {
  // BEGIN SOLUTION
  std::vector<std::uint64_t> hashes;
  std::uint64_t parent = kRoot;
  for (std::size_t at = 0; at + block_size <= text.size(); at += block_size)
    hashes.push_back(parent = hash(parent, text.subspan(at, block_size)));
  return hashes;
  // SKELETON
  // throw std::logic_error("exercise 05, task 5: block_hashes is not written yet");
  // END SOLUTION
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
  // BEGIN SOLUTION
  std::vector<Block> found;
  Block parent = kNoBlock;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if ((i + 1) * block_size >= text.size()) break;
    const auto entry = cache.find(hashes[i]);
    if (entry == cache.end() || entry->second.parent != parent) break;
    const auto tokens = text.subspan(i * block_size, block_size);
    if (!std::ranges::equal(entry->second.tokens, tokens)) break;
    found.push_back(parent = entry->second.block);
  }
  return found;
  // SKELETON
  // throw std::logic_error("exercise 05, task 5: cached_prefix is not written yet");
  // END SOLUTION
}

}  // namespace exercise
