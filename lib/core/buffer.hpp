/// @file
/// Large, aligned, uninitialised host memory.
#pragma once

#include <cstddef>
#include <memory>

namespace lab {

namespace detail {
struct BufferDelete {
  void operator()(std::byte* p) const;
};
}  // namespace detail

/// Owns `size()` bytes aligned to a cache line; on huge pages when large, because a model's
/// weights span far more 4 KiB pages than a TLB has entries.
class Buffer {
 public:
  Buffer() = default;
  /// @throws std::bad_alloc
  explicit Buffer(std::size_t bytes);

  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.get());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes_.get());
  }
  std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[], detail::BufferDelete> bytes_;
  std::size_t size_ = 0;
};

}  // namespace lab
