#include "simt/trace_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace emulator {

Reserved::Reserved(std::size_t bytes) : bytes_(bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<char*>(p);
}
Reserved::~Reserved() { munmap(data_, bytes_); }

void Reserved::clear(std::size_t offset, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t end = offset + bytes, first_page = (offset + kPage - 1) / kPage * kPage,
                    last_page = end / kPage * kPage;
  if (last_page <= first_page) {
    std::memset(data_ + offset, 0, bytes);
    return;
  }
  std::memset(data_ + offset, 0, first_page - offset);
  madvise(data_ + first_page, last_page - first_page, MADV_DONTNEED);
  std::memset(data_ + last_page, 0, end - last_page);
}

Arena::Arena()
    : memory_(bytes_),
      shadow_(bytes_ / 4 * sizeof(Cell)),
      ids_(bytes_ / kGranule * sizeof(std::uint32_t)) {
  free_[0] = bytes_;
}

void Arena::mark(const Block& block, std::uint32_t id) {
  auto* ids = reinterpret_cast<std::uint32_t*>(ids_.data());
  const std::size_t first = block.offset / kGranule,
                    end = (block.offset + block.bytes + kGranule - 1) / kGranule;
  std::fill(ids + first, ids + end, id);
}

void* Arena::allocate(std::size_t bytes) {
  // One granule more than needed: an access right behind belongs to nobody.
  const std::size_t size = (bytes + kGranule - 1) / kGranule * kGranule + kGranule;
  auto it = free_.lower_bound(cursor_);
  while (it != free_.end() && it->second < size) ++it;
  if (it == free_.end()) {
    it = free_.begin();
    while (it != free_.end() && it->second < size) ++it;
    if (it == free_.end()) return nullptr;
  }
  const auto [offset, room] = *it;
  free_.erase(it);
  if (room > size) free_[offset + size] = room - size;
  cursor_ = offset + size;

  Block& block = blocks_[offset] = {offset, bytes, false};
  std::uint32_t id = std::uint32_t(by_id_.size());
  if (free_ids_.empty()) {
    by_id_.push_back(&block);
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
    by_id_[id] = &block;
  }
  mark(block, id);
  return memory_.data() + offset;
}

void Arena::release(void* p) {
  const auto it = blocks_.find(offset_of(p));
  if (it == blocks_.end()) return;
  const Block block = it->second;
  if (block.bytes > 0) {
    const std::uint32_t id =
        reinterpret_cast<std::uint32_t*>(ids_.data())[block.offset / kGranule];
    by_id_[id] = nullptr;
    free_ids_.push_back(id);
    mark(block, 0);
  }
  blocks_.erase(it);
  std::size_t begin = block.offset,
              size = (block.bytes + kGranule - 1) / kGranule * kGranule + kGranule;
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  free_[begin] = size;
}

const Arena::Block* Arena::block_of(const void* p, std::size_t bytes) const {
  const std::size_t offset = offset_of(p);
  const std::uint32_t id =
      reinterpret_cast<const std::uint32_t*>(ids_.data())[offset / kGranule];
  const Block* block = by_id_[id];
  return block && offset + bytes <= block->offset + block->bytes ? block : nullptr;
}

void Arena::host_write(void* p, std::size_t bytes, bool defined) {
  if (bytes == 0) return;
  const std::size_t offset = offset_of(p);
  auto it = blocks_.upper_bound(offset);
  if (it == blocks_.begin()) return;
  Block& block = std::prev(it)->second;
  if (offset == block.offset && bytes == block.bytes) {
    block.defined = defined;
    const std::size_t end = std::min(offset + bytes, touched_);
    if (!defined && offset < end)
      shadow_.clear(offset / 4 * sizeof(Cell), (end - offset + 3) / 4 * sizeof(Cell));
    touched_ = std::max(touched_, offset + bytes);
    return;
  }
  if (!defined || block.defined) return;
  for (std::size_t b = offset; b < offset + bytes; ++b)
    cells()[b / 4].defined |= std::uint8_t(1u << b % 4);
}

std::string Arena::describe(const void* p) const {
  const auto it = blocks_.upper_bound(offset_of(p));
  if (it == blocks_.begin()) return "global memory that is not allocated";
  const Block& block = std::prev(it)->second;
  return "global memory, byte " + std::to_string(offset_of(p) - block.offset) + " of " +
         std::to_string(block.bytes) + " from cudaMalloc";
}

}  // namespace emulator
