/// @file
/// Device arrays and launches for the emulator's tests.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "simt/simt.hpp"
#include "support/catch.hpp"

/// An array in device memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t n) : size_(n) {
    REQUIRE(cudaMalloc(&data_, n * sizeof(T)) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    REQUIRE(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(size_);
    REQUIRE(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// What stands between the chevrons.
struct Grid {
  dim3 grid, block;
  std::size_t smem = 0;
};

/// Launches and returns the report, empty on success.
template <class... P, class... A>
std::string report_of(void (*kernel)(P...), const Grid& g, A&&... arguments) {
  const cudaError_t error =
      emulator::launch(kernel, g.grid, g.block, g.smem, std::forward<A>(arguments)...);
  const std::string report = emulator::last_report();
  CHECK((error == cudaSuccess) == report.empty());
  return report;
}

/// Launches a kernel that must succeed.
template <class... P, class... A>
void run(void (*kernel)(P...), const Grid& g, A&&... arguments) {
  REQUIRE(report_of(kernel, g, std::forward<A>(arguments)...) == "");
}

/// The place in `file` that is marked with the comment "@tag", as reports name it:
/// "file.cu:12".
inline std::string marked_place(const std::string& file, const std::string& tag) {
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number)
    if (line.ends_with("// @" + tag))
      return file.substr(file.rfind('/') + 1) + ":" + std::to_string(number);
  FAIL("no line of " << file << " is marked @" << tag);
  return "";
}
#define AT(tag) marked_place(__FILE__, tag)

/// 0, 1, 2, ... as numbers of type T.
template <class T>
std::vector<T> iota(std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = T(i);
  return values;
}
