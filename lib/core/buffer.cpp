#include "lab/core/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace lab {

void detail::BufferDelete::operator()(std::byte* p) const { std::free(p); }

Buffer::Buffer(std::size_t bytes) : size_(bytes) {
  constexpr std::size_t kCacheLine = 64, kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kCacheLine;
  // At least one unit, so that an empty buffer still has an address of its own.
  const std::size_t padded = (bytes / alignment + 1) * alignment;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(alignment, padded));
  if (p == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (alignment == kHugePage) madvise(p, padded, MADV_HUGEPAGE);  // a hint; may be refused
#endif
  bytes_.reset(p);
}

std::byte* Arena::allocate(std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64;
  const std::size_t padded = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  if (chunks_.empty() || chunks_.back().size() - used_ < padded) {
    chunks_.emplace_back(std::max(chunk_, padded));
    used_ = 0;
  }
  std::byte* p = chunks_.back().data() + used_;
  used_ += padded;
  return p;
}

}  // namespace lab
