#include "lab/paging/block_manager.hpp"

#include <algorithm>

#include "lab/core/error.hpp"

namespace lab {

BlockManager::BlockManager(const BlockManagerConfig& config)
    : config_(config), pool_(config.n_blocks), cache_(config.block_size, config.hash) {}

const BlockManager::Sequence& BlockManager::get(std::int64_t sequence) const {
  const auto i = sequences_.find(sequence);
  LAB_CHECK(i != sequences_.end(),
            "block manager: there is no sequence {}; it was never opened or is closed",
            sequence);
  return i->second;
}
BlockManager::Sequence& BlockManager::get(std::int64_t sequence) {
  return const_cast<Sequence&>(std::as_const(*this).get(sequence));
}

std::span<const std::int32_t> BlockManager::blocks(std::int64_t sequence) const {
  return get(sequence).blocks;
}
std::int64_t BlockManager::length(std::int64_t sequence) const {
  return get(sequence).length;
}

std::int64_t BlockManager::blocks_for(std::int64_t n_positions) const {
  return (n_positions + config_.block_size - 1) / config_.block_size;
}

std::int64_t BlockManager::add(Sequence s) {
  if (free_numbers_.empty()) free_numbers_.insert(n_sequences());
  const std::int64_t number = free_numbers_.extract(free_numbers_.begin()).value();
  sequences_.emplace(number, std::move(s));
  return number;
}

/// The caller has made sure that there is one.
std::int32_t BlockManager::take_block() {
  const std::int32_t block = pool_.allocate().value();
  cache_.erase(block);  // least recently freed: evicted
  return block;
}

void BlockManager::give_back(std::int32_t block) {
  pool_.release(block, cache_.contains(block));
}

std::int64_t BlockManager::cached_prefix(std::span<const std::int32_t> text,
                                         std::uint64_t salt) const {
  if (!config_.prefix_caching || text.empty()) return 0;
  return std::ssize(cache_.find(text.first(text.size() - 1), salt)) * config_.block_size;
}

// [region open]
std::optional<std::int64_t> BlockManager::open(std::span<const std::int32_t> text,
                                               std::int64_t n_positions,
                                               std::uint64_t salt) {
  Sequence s{.blocks = {}, .length = cached_prefix(text, salt), .salt = salt};
  if (s.length > 0) s.blocks = cache_.find(text.first(std::size_t(s.length)), salt);
  // A hit that no one owns is free until it is shared: it must not be counted twice.
  const std::int64_t revived = std::ranges::count_if(
      s.blocks, [&](std::int32_t b) { return pool_.references(b) == 0; });
  const std::int64_t fresh =
      blocks_for(std::max(n_positions, s.length)) - std::ssize(s.blocks);
  if (fresh + revived > pool_.n_free()) return {};
  for (const std::int32_t b : s.blocks) pool_.share(b);  // before any is taken
  for (std::int64_t i = 0; i < fresh; ++i) s.blocks.push_back(take_block());
  return add(std::move(s));
}
// [endregion]

// [region grow]
bool BlockManager::grow(std::int64_t sequence, std::int64_t n_positions) {
  Sequence& s = get(sequence);
  const std::int64_t fresh =
      std::max<std::int64_t>(0, blocks_for(n_positions) - std::ssize(s.blocks));
  const auto first_written = s.blocks.begin() + s.length / config_.block_size;
  const std::int64_t shared =
      std::count_if(std::min(first_written, s.blocks.end()), s.blocks.end(),
                    [&](std::int32_t b) { return pool_.references(b) > 1; });
  if (n_positions <= s.length) return true;  // nothing is written
  if (fresh + shared > pool_.n_free()) return false;
  copy_before_write(s);
  for (std::int64_t i = 0; i < fresh; ++i) s.blocks.push_back(take_block());
  return true;
}

/// Replaces the shared blocks that hold positions from the length on; only the first of
/// them holds something. Those that are not shared may still be known by what a truncation
/// has left in them: no more.
void BlockManager::copy_before_write(Sequence& s) {
  for (auto i = std::size_t(s.length / config_.block_size); i < s.blocks.size(); ++i) {
    if (pool_.references(s.blocks[i]) == 1) {
      cache_.erase(s.blocks[i]);
      continue;
    }
    const std::int32_t own = take_block();
    if (std::int64_t(i) * config_.block_size < s.length)
      copies_.push_back({s.blocks[i], own});
    give_back(s.blocks[i]);
    s.blocks[i] = own;
  }
}
// [endregion]

void BlockManager::stored(std::int64_t sequence, std::span<const std::int32_t> text) {
  Sequence& s = get(sequence);
  LAB_CHECK(std::ssize(text) <= std::ssize(s.blocks) * config_.block_size,
            "block manager: {} positions stored in sequence {}, whose {} blocks hold {}",
            text.size(), sequence, s.blocks.size(),
            std::ssize(s.blocks) * config_.block_size);
  const std::int64_t before = s.length / config_.block_size;
  s.length = std::ssize(text);
  // Once for each block, not for each token: the walk along the text is not free.
  if (config_.prefix_caching && s.length / config_.block_size > before)
    cache_.insert(text, s.blocks, s.salt);
}

void BlockManager::truncate(std::int64_t sequence, std::int64_t to) {
  Sequence& s = get(sequence);
  LAB_CHECK(to >= 0 && to <= s.length,
            "block manager: cannot truncate sequence {} to {} positions; it stores {}",
            sequence, to, s.length);
  while (std::ssize(s.blocks) > blocks_for(to)) {
    give_back(s.blocks.back());
    s.blocks.pop_back();
  }
  s.length = to;
}

// [region fork]
std::int64_t BlockManager::fork(std::int64_t sequence) {
  Sequence child = get(sequence);
  if (config_.fork_mode == ForkMode::append_only)
    child.length -= child.length % config_.block_size;
  // Room that the parent has not written to is its own.
  const bool append_only = config_.fork_mode == ForkMode::append_only;
  child.blocks.resize(std::size_t(append_only ? child.length / config_.block_size
                                              : blocks_for(child.length)));
  for (const std::int32_t b : child.blocks) pool_.share(b);
  return add(std::move(child));
}
// [endregion]

void BlockManager::close(std::int64_t sequence) {
  Sequence& s = get(sequence);
  for (; !s.blocks.empty(); s.blocks.pop_back()) give_back(s.blocks.back());
  sequences_.erase(sequence);
  free_numbers_.insert(sequence);
}

BlockUsage BlockManager::usage() const {
  BlockUsage u{.blocks = n_blocks() - n_free(), .owners = 0, .room = 0, .stored = 0};
  u.room = u.blocks * config_.block_size;
  std::map<std::int32_t, std::int64_t> filled;  // most positions of a block
  for (const auto& [number, s] : sequences_) {
    u.owners += std::ssize(s.blocks);
    for (std::int64_t i = 0; i < std::ssize(s.blocks); ++i) {
      const std::int64_t n = std::clamp<std::int64_t>(s.length - i * config_.block_size, 0,
                                                      config_.block_size);
      std::int64_t& most = filled[s.blocks[std::size_t(i)]];
      most = std::max(most, n);
    }
  }
  for (const auto& [block, n] : filled) u.stored += n;
  return u;
}

}  // namespace lab
