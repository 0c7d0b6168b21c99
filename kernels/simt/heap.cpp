#include "simt/heap.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "simt/report.hpp"
#include "simt/tracer.hpp"

namespace emulator {
namespace {

constexpr std::size_t kTotal = std::size_t(8) << 30;  // what the device says it has

struct Heap {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> device, pinned;  // address -> bytes
  std::size_t used = 0;
};
Heap& heap() {
  static Heap& h = *new Heap;  // device buffers may be freed while the program ends
  return h;
}

bool holds(const std::map<std::uintptr_t, std::size_t>& blocks, const void* p,
           std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) return false;
  --it;
  return address - it->first < std::max<std::size_t>(it->second, 1) &&
         bytes <= it->second - (address - it->first);
}

/// Exactly `bytes`, so that the address sanitizer's red zone starts right behind.
void* aligned(std::size_t bytes) {
  void* p = nullptr;
  return posix_memalign(&p, 256, std::max<std::size_t>(bytes, 1)) ? nullptr : p;
}

}  // namespace

bool is_device_pointer(const void* p) { return is_device_range(p, 0); }

bool is_pinned_pointer(const void* p) {
  std::lock_guard lock(heap().mutex);
  return holds(heap().pinned, p, 0);
}

bool is_device_range(const void* p, std::size_t bytes) {
  std::lock_guard lock(heap().mutex);
  return holds(heap().device, p, bytes);
}

void undefine_device(void* p, std::size_t bytes) {
  if (config().poison) std::memset(p, 0xFF, bytes);
  if (Tracer* t = tracer()) t->host_write(p, bytes, false);
}

bool free_device(void* p) {
  {
    std::lock_guard lock(heap().mutex);
    const auto it = heap().device.find(reinterpret_cast<std::uintptr_t>(p));
    if (it == heap().device.end()) return false;
    heap().used -= it->second;
    heap().device.erase(it);
  }
  if (Tracer* t = tracer())
    t->release(p);
  else
    std::free(p);
  return true;
}

cudaError_t allocate_device(void** p, std::size_t bytes, cudaStream_t stream) {
  *p = tracer() ? tracer()->allocate(bytes) : aligned(bytes);
  if (!*p)
    return refuse(cudaErrorMemoryAllocation, "out of memory",
                  std::to_string(bytes) + " bytes of device memory are not to be had");
  {
    std::lock_guard lock(heap().mutex);
    heap().device[reinterpret_cast<std::uintptr_t>(*p)] = bytes;
    heap().used += bytes;
  }
  return enqueue(stream, [p = *p, bytes] {
    undefine_device(p, bytes);
    return cudaSuccess;
  });
}

cudaError_t allocate_host(void** p, std::size_t bytes) {
  *p = aligned(bytes);
  if (!*p)
    return refuse(cudaErrorMemoryAllocation, "out of memory",
                  std::to_string(bytes) + " bytes of host memory are not to be had");
  std::lock_guard lock(heap().mutex);
  heap().pinned[reinterpret_cast<std::uintptr_t>(*p)] = bytes;
  return cudaSuccess;
}

bool check_pointer_argument(const void* p, int index, const void* kernel) {
  if (!p || is_device_pointer(p) || is_pinned_pointer(p)) return true;
  clear_report();
  add_report("host pointer passed to a kernel",
             "argument " + std::to_string(index) +
                 " (the first is 0) does not point into device memory; expected a pointer "
                 "from cudaMalloc that has not been freed",
             kernel);
  set_error(cudaErrorInvalidValue);
  return false;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaFreeHost(void* p) {
  if (!p) return cudaSuccess;
  {
    std::lock_guard lock(heap().mutex);
    if (!heap().pinned.erase(reinterpret_cast<std::uintptr_t>(p)))
      return set_error(cudaErrorInvalidValue);
  }
  std::free(p);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  std::lock_guard lock(heap().mutex);
  *total = kTotal;
  *free = kTotal - std::min(kTotal, heap().used);
  return cudaSuccess;
}
