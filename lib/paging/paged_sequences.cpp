#include "lab/paging/paged_sequences.hpp"

#include "lab/core/error.hpp"

namespace lab {

std::int64_t PagedSequences::open(std::span<const std::int32_t> text) {
  const auto sequence = manager_.open(text, std::ssize(text));
  LAB_CHECK(sequence,
            "paged KV cache: {} positions need more than the {} free of {} blocks of {}; "
            "make the cache larger",
            text.size(), manager_.n_free(), manager_.n_blocks(), manager_.block_size());
  return *sequence;
}

void PagedSequences::grow(std::int64_t sequence, std::int64_t n_positions) {
  LAB_CHECK(
      manager_.grow(sequence, n_positions),
      "paged KV cache: sequence {} cannot grow to {} positions; {} of {} blocks of {} "
      "are free: make the cache larger",
      sequence, n_positions, manager_.n_free(), manager_.n_blocks(), manager_.block_size());
  const auto copies = manager_.take_copies();
  cache_.copy(copies);
  n_copied_ += std::ssize(copies);
}

void PagedSequences::stored(std::int64_t sequence, std::span<const std::int32_t> text) {
  manager_.stored(sequence, text);
  const BlockUsage now = manager_.usage();
  if (now.blocks > peak_.blocks ||
      (now.blocks == peak_.blocks && now.owners > peak_.owners))
    peak_ = now;
}

}  // namespace lab
