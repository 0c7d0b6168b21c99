#include "lab/device/memory.hpp"

#include <cstdint>
#include <utility>

#include "lab/device/device.hpp"

namespace lab {

DeviceBuffer::DeviceBuffer(Device& device, std::size_t bytes)
    : device_(&device), data_(device.allocate(bytes)), size_(bytes) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) device_->release(data_);
}

template <class T>
DeviceVector<T>::DeviceVector(Device& device, std::span<const T> values)
    : memory_(device, values.size_bytes()) {
  device.upload(memory_.data(), values.data(), values.size_bytes());
}

template class DeviceVector<float>;
template class DeviceVector<std::int32_t>;

}  // namespace lab
