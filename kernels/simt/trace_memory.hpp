/// @file
/// The device memory of the trace flavour, with its shadow: for every 4 bytes, who wrote
/// and read them last and whether they have a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simt/emulator.hpp"
#include "simt/trace_clocks.hpp"

namespace emulator {

/// The shadow of 4 bytes.
struct Cell {
  Access write, read, older_read;
  std::uint32_t block = 0;   ///< shared memory: to whom the rest belongs
  std::uint8_t defined = 0;  ///< mask of the bytes that have a value
};

/// Anonymous memory, zero, that costs nothing until it is touched.
class Reserved {
 public:
  /// @throws std::bad_alloc
  explicit Reserved(std::size_t bytes);
  ~Reserved();
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  /// Makes the range zero again.
  void clear(std::size_t offset, std::size_t bytes);
  char* data() const { return data_; }

 private:
  char* data_;
  std::size_t bytes_;
};

/// Device memory in one arena, so that every address in it that is not allocated is an
/// error. Freed memory is used again as late as possible.
class Arena {
 public:
  struct Block {
    std::size_t offset = 0, bytes = 0;
    bool defined = false;  ///< the host has given all of it a value
  };

  Arena();
  void* allocate(std::size_t bytes);  ///< null if there is no room
  void release(void* p);
  void host_write(void* p, std::size_t bytes, bool defined);

  bool contains(const void* p) const {
    return p >= memory_.data() && p < memory_.data() + bytes_;
  }
  /// The allocation in which the access lies as a whole, or null.
  const Block* block_of(const void* p, std::size_t bytes) const;
  std::size_t offset_of(const void* p) const {
    return std::size_t(static_cast<const char*>(p) - memory_.data());
  }
  Cell* cells() const { return reinterpret_cast<Cell*>(shadow_.data()); }
  /// "global memory, byte 400 of 400 from cudaMalloc"
  std::string describe(const void* p) const;

 private:
  static constexpr std::size_t kGranule = 256;
  void mark(const Block& block, std::uint32_t id);

  std::size_t bytes_ = config().trace_bytes / kGranule * kGranule;
  Reserved memory_, shadow_, ids_;       // ids_: of the block at each granule, 0 if none
  std::map<std::size_t, Block> blocks_;  // by offset
  std::vector<Block*> by_id_{nullptr};
  std::vector<std::uint32_t> free_ids_;
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes
  std::size_t cursor_ = 0, touched_ = 0;
};

}  // namespace emulator
