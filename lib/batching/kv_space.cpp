#include "lab/batching/kv_space.hpp"

#include "lab/core/error.hpp"

namespace lab {

std::int64_t KvSpace::cached_prefix(std::span<const std::int32_t>) const { return 0; }
void KvSpace::stored(std::int64_t, std::span<const std::int32_t>) {}

// ----- slots

SlotKvSpace::SlotKvSpace(std::int64_t n_slots, std::int64_t capacity,
                         ContiguousKvCache* cache)
    : n_slots_(n_slots), capacity_(capacity), cache_(cache) {
  LAB_CHECK(n_slots >= 1 && capacity >= 1,
            "KV slots: {} slots of {} positions asked for; both must be at least 1",
            n_slots, capacity);
  if (cache_) {
    cache_->length(n_slots - 1);  // throws if the cache has fewer sequences
    LAB_CHECK(cache_->capacity() >= capacity,
              "KV slots: slots of {} positions but the cache's sequences hold {}; make the "
              "cache larger or the slots smaller",
              capacity, cache_->capacity());
  }
  for (std::int64_t slot = 0; slot < n_slots; ++slot) free_.insert(slot);
}

std::int64_t SlotKvSpace::held() const {
  return (n_slots_ - std::ssize(free_)) * capacity_;
}

std::optional<KvLease> SlotKvSpace::admit(std::span<const std::int32_t>,
                                          std::int64_t n_positions) {
  if (free_.empty() || n_positions > capacity_) return {};
  return KvLease{free_.extract(free_.begin()).value(), 0};
}

bool SlotKvSpace::grow(std::int64_t, std::int64_t n_positions) {
  return n_positions <= capacity_;
}

void SlotKvSpace::release(std::int64_t sequence) {
  LAB_CHECK(sequence >= 0 && sequence < n_slots_ && !free_.contains(sequence),
            "KV slots: slot {} is released but not in use; release each sequence once",
            sequence);
  if (cache_) cache_->truncate(sequence, 0);
  free_.insert(sequence);
}

// ----- pool

PooledKvSpace::PooledKvSpace(std::int64_t n_positions) : total_(n_positions) {
  LAB_CHECK(n_positions >= 1, "KV pool: {} positions asked for; give at least 1",
            n_positions);
}

std::optional<KvLease> PooledKvSpace::admit(std::span<const std::int32_t>,
                                            std::int64_t n_positions) {
  if (n_positions > total_ - held_) return {};
  if (free_numbers_.empty()) free_numbers_.insert(std::ssize(sizes_));
  const std::int64_t sequence = free_numbers_.extract(free_numbers_.begin()).value();
  sizes_[sequence] = n_positions;
  held_ += n_positions;
  return KvLease{sequence, 0};
}

bool PooledKvSpace::grow(std::int64_t sequence, std::int64_t n_positions) {
  std::int64_t& size = sizes_.at(sequence);
  const std::int64_t more = n_positions - size;
  if (more > total_ - held_) return false;
  if (more > 0) {
    size += more;
    held_ += more;
  }
  return true;
}

void PooledKvSpace::release(std::int64_t sequence) {
  const auto found = sizes_.find(sequence);
  LAB_CHECK(found != sizes_.end(),
            "KV pool: sequence {} is released but not in use; release each sequence once",
            sequence);
  held_ -= found->second;
  sizes_.erase(found);
  free_numbers_.insert(sequence);
}

}  // namespace lab
