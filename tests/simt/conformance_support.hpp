/// @file
/// Device memory, repeatable numbers and output lines of the conformance program.
#pragma once

#include <cstdio>
#include <vector>

#include "cuda/compat.hpp"

namespace lab::LAB_GPU {

using Words = std::vector<std::uint32_t>;

/// Device memory for the words that a kernel reads or writes.
class Buffer {
 public:
  explicit Buffer(const Words& w) : words_(w) {
    data_ = reinterpret_cast<std::uint32_t*>(allocate(bytes(), nullptr));
    copy_to_device(data_, words_.data(), bytes(), nullptr);
  }
  ~Buffer() { release(reinterpret_cast<std::byte*>(data_), nullptr); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::uint32_t* data() const { return data_; }
  const Words& read() {
    copy_to_host(words_.data(), data_, bytes(), nullptr);
    synchronize(nullptr);
    return words_;
  }

 private:
  std::size_t bytes() const { return words_.size() * sizeof(std::uint32_t); }
  Words words_;
  std::uint32_t* data_;
};

/// A sequence of 32-bit numbers that is the same everywhere.
class Sequence {
 public:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return std::uint32_t(state_ >> 33) ^ std::uint32_t(state_ >> 11);
  }
  Words words(std::size_t n) {
    Words w(n);
    for (std::uint32_t& v : w) v = next();
    return w;
  }

 private:
  std::uint64_t state_ = 1;
};

/// One line: a name and the words, as hexadecimal numbers.
inline void print(std::FILE* out, const char* name, const std::uint32_t* words,
                  std::size_t n) {
  std::fprintf(out, "%s", name);
  for (std::size_t i = 0; i < n; ++i) std::fprintf(out, " %x", words[i]);
  std::fprintf(out, "\n");
}
inline void print_lanes(std::FILE* out, const char* name, Buffer& b) {
  const Words& w = b.read();
  for (std::size_t i = 0; i < w.size(); i += 32) print(out, name, &w[i], 32);
}

}  // namespace lab::LAB_GPU
