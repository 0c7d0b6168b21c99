#include "lab/paging/paged_kv_space.hpp"

#include "lab/core/error.hpp"

namespace lab {

PagedKvSpace::PagedKvSpace(BlockManager& manager, double watermark) : manager_(manager) {
  LAB_CHECK(watermark >= 0 && watermark < 1,
            "paged KV space: the watermark is {}; it is a share of the blocks, from 0 to "
            "below 1",
            watermark);
  reserve_ = std::int64_t(watermark * double(manager.n_blocks()));
}

std::optional<KvLease> PagedKvSpace::admit(std::span<const std::int32_t> text,
                                           std::int64_t n_positions) {
  const std::int64_t free = manager_.n_free();
  const auto sequence = manager_.open(text, n_positions);
  if (!sequence) return {};
  // A sequence that is alone may take everything, or it might never run.
  if (manager_.n_free() < reserve_ && manager_.n_sequences() > 1 &&
      manager_.n_free() < free) {
    manager_.close(*sequence);
    return {};
  }
  return KvLease{*sequence, manager_.length(*sequence)};
}

}  // namespace lab
