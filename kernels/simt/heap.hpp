/// @file
/// Memory of the emulated device, and pinned host memory.
#pragma once

#include <cstddef>

namespace emulator {

/// Whether p points into device memory that is allocated.
bool is_device_pointer(const void* p);
/// Whether p points into host memory that the device can reach (cudaMallocHost).
bool is_pinned_pointer(const void* p);
/// Whether the whole range lies in one allocation.
bool is_device_range(const void* p, std::size_t bytes);
/// Fills device memory with NaN: what it holds means nothing.
void undefine_device(void* p, std::size_t bytes);
bool free_device(void* p);

}  // namespace emulator
