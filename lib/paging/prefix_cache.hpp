/// @file
/// Finds blocks that already hold the keys and values of a text's beginning.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace lab {

/// The hash of a full block: of all tokens up to its end, by way of the hash before it.
using BlockHash = std::function<std::uint64_t(std::uint64_t parent,
                                              std::span<const std::int32_t> tokens)>;

/// Mixes each token into the parent's hash (splitmix64's finaliser).
std::uint64_t chained_block_hash(std::uint64_t parent,
                                 std::span<const std::int32_t> tokens);

/// Which blocks hold which tokens after which others. The keys of a token depend on all
/// tokens before it, so a block is known by its tokens and by the block before it.
///
/// A hash only finds candidates. A hit is verified: its tokens are compared, and it must
/// follow the very entry that was hit before it. Two texts whose hashes collide never read
/// each other's keys.
/// @par Source vLLM, "Automatic prefix caching" (hashes of full blocks, chained)
class PrefixCache {
 public:
  /// @throws Error if block_size is below 1
  explicit PrefixCache(std::int64_t block_size, BlockHash hash = chained_block_hash);

  /// @return the blocks that hold the text's first tokens, one for each whole block
  /// @param salt  texts with different salts share nothing (tenants, adapters)
  std::vector<std::int32_t> find(std::span<const std::int32_t> text,
                                 std::uint64_t salt = 0) const;

  /// Remembers that `blocks` hold the whole blocks of `text`. Where another block is known
  /// to hold the same, that one stays.
  void insert(std::span<const std::int32_t> text, std::span<const std::int32_t> blocks,
              std::uint64_t salt = 0);

  /// Forgets a block, because it is about to hold something else.
  void erase(std::int32_t block);
  /// Whether it holds something that find() may give.
  bool contains(std::int32_t block) const { return by_block_.count(block) != 0; }
  std::int64_t size() const { return std::ssize(by_block_); }

 private:
  struct Entry {
    std::int32_t block;
    std::int64_t serial, parent;  // numbers of entries, never used again; 0: the root
    std::uint64_t salt;
    std::vector<std::int32_t> tokens;
  };
  using Entries = std::multimap<std::uint64_t, Entry>;  // whose iterators stay valid
  /// A place in the chain: everything before it has been verified.
  struct Link {
    std::uint64_t salt, hash;
    std::int64_t serial;
  };
  Entries::const_iterator follow(const Link& link,
                                 std::span<const std::int32_t> tokens) const;

  std::int64_t block_size_;
  BlockHash hash_;
  Entries entries_;  // by hash
  std::unordered_map<std::int32_t, Entries::const_iterator> by_block_;
  std::int64_t last_serial_ = 0;
};

}  // namespace lab
