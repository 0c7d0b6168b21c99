#include "lab/paging/block_pool.hpp"

#include "lab/core/error.hpp"

namespace lab {

BlockPool::BlockPool(std::int64_t n_blocks) {
  LAB_CHECK(n_blocks >= 1 && n_blocks < INT32_MAX,
            "block pool: {} blocks asked for; it needs 1 to {}", n_blocks, INT32_MAX - 1);
  const auto ends = std::int32_t(n_blocks);
  next_.assign(std::size_t(n_blocks) + 1, ends);
  previous_ = next_;
  references_.assign(std::size_t(n_blocks), 0);
  for (std::int32_t block = 0; block < ends; ++block) link(block, ends);
}

void BlockPool::check(std::int32_t block) const {
  LAB_CHECK(block >= 0 && block < n_blocks(),
            "block pool: there is no block {}; there are blocks 0 to {}", block,
            n_blocks() - 1);
}

std::int64_t BlockPool::references(std::int32_t block) const {
  check(block);
  return references_[std::size_t(block)];
}

void BlockPool::link(std::int32_t block, std::int32_t before) {
  const std::int32_t after = previous_[std::size_t(before)];
  next_[std::size_t(block)] = before;
  previous_[std::size_t(block)] = after;
  next_[std::size_t(after)] = previous_[std::size_t(before)] = block;
  ++n_free_;
}

void BlockPool::unlink(std::int32_t block) {
  const std::int32_t after = previous_[std::size_t(block)],
                     before = next_[std::size_t(block)];
  next_[std::size_t(after)] = before;
  previous_[std::size_t(before)] = after;
  --n_free_;
}

std::optional<std::int32_t> BlockPool::next_free() const {
  if (n_free_ == 0) return {};
  return next_.back();
}

std::optional<std::int32_t> BlockPool::allocate() {
  const auto block = next_free();
  if (block) share(*block);
  return block;
}

void BlockPool::share(std::int32_t block) {
  check(block);
  if (references_[std::size_t(block)]++ == 0) unlink(block);
}

bool BlockPool::release(std::int32_t block, bool keep) {
  check(block);
  LAB_CHECK(references_[std::size_t(block)] > 0,
            "block pool: block {} is free already; each owner releases it once", block);
  if (--references_[std::size_t(block)] > 0) return false;
  const auto ends = std::int32_t(n_blocks());
  link(block, keep ? ends : next_[std::size_t(ends)]);
  return true;
}

}  // namespace lab
