/// @file
/// Device memory that one call of an operation needs.
#pragma once

#include "cuda/compat.hpp"

namespace lab::LAB_GPU {

/// `count` elements, unset; none if 0. They go back to the pool in the order of the stream:
/// kernels that were launched before still have them.
template <class T>
class Scratch {
 public:
  Scratch(std::int64_t count, Stream stream)
      : data_(count > 0
                  ? reinterpret_cast<T*>(allocate(std::size_t(count) * sizeof(T), stream))
                  : nullptr),
        stream_(stream) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (data_) release(reinterpret_cast<std::byte*>(data_), stream_);
  }
  T* data() const { return data_; }

 private:
  T* data_;
  Stream stream_;
};

}  // namespace lab::LAB_GPU
