#include "lab/paging/prefix_cache.hpp"

#include <algorithm>

#include "lab/core/error.hpp"

namespace lab {

std::uint64_t chained_block_hash(std::uint64_t parent,
                                 std::span<const std::int32_t> tokens) {
  const auto mix = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  std::uint64_t h = mix(parent + 0x9e3779b97f4a7c15u);
  for (const std::int32_t t : tokens) h = mix(h + 0x9e3779b97f4a7c15u + std::uint32_t(t));
  return h;
}

PrefixCache::PrefixCache(std::int64_t block_size, BlockHash hash)
    : block_size_(block_size), hash_(std::move(hash)) {
  LAB_CHECK(block_size >= 1, "prefix cache: blocks of {} tokens; at least 1 is needed",
            block_size);
}

PrefixCache::Entries::const_iterator PrefixCache::follow(
    const Link& link, std::span<const std::int32_t> tokens) const {
  const auto [begin, end] = entries_.equal_range(hash_(link.hash, tokens));
  for (auto i = begin; i != end; ++i)
    if (i->second.salt == link.salt && i->second.parent == link.serial &&
        std::ranges::equal(i->second.tokens, tokens))
      return i;
  return entries_.end();
}

// [region find]
std::vector<std::int32_t> PrefixCache::find(std::span<const std::int32_t> text,
                                            std::uint64_t salt) const {
  std::vector<std::int32_t> blocks;
  Link link{salt, salt, 0};
  for (std::size_t end = std::size_t(block_size_); end <= text.size();
       end += std::size_t(block_size_)) {
    const auto hit = follow(link, text.first(end).last(std::size_t(block_size_)));
    if (hit == entries_.end()) break;
    blocks.push_back(hit->second.block);
    link = {salt, hit->first, hit->second.serial};
  }
  return blocks;
}
// [endregion]

void PrefixCache::insert(std::span<const std::int32_t> text,
                         std::span<const std::int32_t> blocks, std::uint64_t salt) {
  Link link{salt, salt, 0};
  const std::size_t size = std::size_t(block_size_);
  for (std::size_t i = 0; (i + 1) * size <= text.size() && i < blocks.size(); ++i) {
    const auto tokens = text.subspan(i * size, size);
    auto entry = follow(link, tokens);
    if (entry == entries_.end()) {
      if (contains(blocks[i])) return;  // it is known as the end of another text
      entry = entries_.insert(
          {hash_(link.hash, tokens),
           {blocks[i], ++last_serial_, link.serial, salt, {tokens.begin(), tokens.end()}}});
      by_block_.emplace(blocks[i], entry);
    }
    link = {salt, entry->first, entry->second.serial};
  }
}

void PrefixCache::erase(std::int32_t block) {
  const auto i = by_block_.find(block);
  if (i == by_block_.end()) return;
  entries_.erase(i->second);
  by_block_.erase(i);
}

}  // namespace lab
