/// @file
/// What the tests of a CUDA exercise need of the device that runs it, emulated or real:
/// device memory, schedules, and what kernels moved. The tests themselves are plain C++.
#ifndef LAB_EXERCISES_DEVICE_HPP
#define LAB_EXERCISES_DEVICE_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "testing.hpp"

namespace testing {

void* allocate_device(std::size_t bytes);
void free_device(void* p);
void copy_to_device(void* device, const void* host, std::size_t bytes);
void copy_to_host(void* host, const void* device, std::size_t bytes);
/// Whether the emulator checks every access: it then finds what guard bands would swallow.
bool traced();

/// An array in device memory. Outside the traced flavour it lies between two bands of a
/// known pattern, which show writes beside it.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    copy_to_device(data(), values.data(), size_ * sizeof(T));
  }
  /// Without values: NaN in every float type, and an error to read where that is checked.
  explicit DeviceArray(std::size_t size) : size_(size) {
    all_ = static_cast<unsigned char*>(allocate_device(size * sizeof(T) + 2 * band()));
    const std::vector<unsigned char> pattern(band(), pattern_);
    copy_to_device(all_, pattern.data(), band());
    copy_to_device(all_ + band() + size * sizeof(T), pattern.data(), band());
  }
  ~DeviceArray() { free_device(all_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return reinterpret_cast<T*>(all_ + band()); }

  /// @throws std::runtime_error if something was written beside the array
  std::vector<T> values() const {
    std::vector<unsigned char> bytes(size_ * sizeof(T) + 2 * band());
    copy_to_host(bytes.data(), all_, bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool inside = i >= band() && i < bytes.size() - band();
      if (!inside && bytes[i] != pattern_)
        throw std::runtime_error(i < band() ? "a thread wrote in front of an array"
                                            : "a thread wrote behind the end of an array");
    }
    std::vector<T> out(size_);
    std::copy_n(bytes.data() + band(), size_ * sizeof(T),
                reinterpret_cast<unsigned char*>(out.data()));
    return out;
  }

 private:
  static std::size_t band() { return traced() ? 0 : 1024; }
  /// Another one for each array, so that a copy from band to band shows; as numbers of 16
  /// or 32 bits they are so large that a result into which one got is wrong.
  static unsigned char next_pattern() {
    static unsigned count = 0;
    return static_cast<unsigned char>(0x70 + ++count % 15);
  }

  unsigned char pattern_ = next_pattern();
  unsigned char* all_ = nullptr;
  std::size_t size_;
};

/// Calls `work` once for each order in which the emulator can run a block's threads:
/// forward, reverse, random, and one warp far ahead of the others. Once on a GPU.
void in_every_order(const std::function<void()>& work);

/// What the launches of a piece of work did (emulated). Sectors are pieces of 32 bytes of
/// global memory; wavefronts are turns of the 32 banks of shared memory. Memory is counted
/// in the traced flavour only.
struct Cost {
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::uint64_t load_instructions = 0;  ///< of whole warps, from global memory
  std::uint64_t sectors_loaded = 0, sectors_stored = 0;
  std::uint64_t wavefronts = 0, wavefronts_without_conflicts = 0;
  std::string
      worst_line;  ///< "exercise.cu:41 loads 32.0 sectors ..."; empty if all is well
};
Cost cost_of(const std::function<void()>& work);

/// A count against a budget: at most 1.1 times the ideal.
inline Comparison within_budget(const Cost& cost, std::uint64_t actual,
                                std::uint64_t ideal) {
  if (10 * actual <= 11 * ideal) return {};
  std::ostringstream text;
  text << actual << ", but the budget is " << 11 * ideal / 10 << ": 1.1 times the ideal "
       << ideal;
  if (!cost.worst_line.empty()) text << "; " << cost.worst_line;
  return {text.str()};
}

}  // namespace testing

#endif
