/// @file
/// Memory of a device, owned.
#pragma once

#include <cstddef>
#include <span>

#include "lab/core/view.hpp"

namespace lab {

class Device;

/// Owns bytes of a device's memory; the device must outlive it. Unset when new.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Device& device, std::size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An array of device memory that is used again and again with other shapes. It grows and
/// never shrinks, so that its address stays while the shapes repeat.
template <class T>
class DeviceArray {
 public:
  /// A view of the given shape; what the array held is lost if it had to grow.
  template <std::size_t N>
  DeviceView<T, int(N)> fit(Device& device, const std::int64_t (&shape)[N]) {
    DeviceView<T, int(N)> v;
    for (std::size_t i = 0; i < N; ++i) v.shape[i] = shape[i];
    const std::size_t bytes = std::size_t(v.size()) * sizeof(T);
    if (bytes > memory_.size()) {
      memory_ = {};  // first, so that both do not live at a time
      memory_ = DeviceBuffer(device, bytes);
    }
    v.data = reinterpret_cast<T*>(memory_.data());
    return v;
  }

 private:
  DeviceBuffer memory_;
};

/// A copy of host elements on a device.
template <class T>
class DeviceVector {
 public:
  DeviceVector() = default;
  DeviceVector(Device& device, std::span<const T> values);
  DeviceView<const T, 1> view() const {
    return {reinterpret_cast<const T*>(memory_.data()),
            {std::int64_t(memory_.size() / sizeof(T))}};
  }

 private:
  DeviceBuffer memory_;
};

}  // namespace lab
