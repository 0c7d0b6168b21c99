/// @file
/// Which memory accesses happen before which: vector clocks over barriers, __syncwarp, and
/// fences with atomics, for the race detector of the trace flavour.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

namespace emulator {

/// Who touched a piece of memory, and when.
struct Access {
  std::uint32_t site = 0;   ///< the instruction
  std::uint32_t block = 0;  ///< counted over all launches; 0: nobody
  std::uint32_t clock = 0;  ///< of the thread
  std::uint16_t thread = 0;
  std::uint8_t bytes = 0;  ///< mask of the bytes of the 4-byte cell
  bool atomic = false;
};

/// A thread's clock grows whenever others may learn of what it has done. Blocks run one
/// after another, and a launch begins after the one before has ended.
///
/// Fences and atomics order as the PTX memory model's release and acquire patterns: what a
/// thread has done or learnt before a __threadfence() is known to everyone who, with an
/// atomic operation, comes after its next atomic operation on the same address. Milder than
/// PTX in two points: an atomic acquires without a fence behind it, and a barrier shares
/// the fences of all threads.
/// @par Source FastTrack (Flanagan, Freund, 2009); PTX ISA, "Memory Consistency Model"
class Clocks {
 public:
  void begin_launch();
  void begin_block(std::uint32_t block, int threads);
  void barrier();
  void warp_sync(int warp, std::uint32_t mask);
  /// __threadfence(), or (not `whole_device`) __threadfence_block()
  void fence(int thread, bool whole_device);
  /// An atomic read-modify-write, or a volatile access.
  void atomic(int thread, const void* address);

  std::uint32_t block() const { return block_; }
  std::uint32_t now(int thread) const { return clock_[std::size_t(thread)]; }
  /// Whether the earlier access `a` happens before what `thread` does now.
  bool ordered(const Access& a, int thread) const;

 private:
  /// What is known of each thread of one block: everything up to that clock. May be empty.
  using Knowledge = std::vector<std::uint32_t>;
  using Addresses = std::set<const void*>;
  using ByBlock = std::unordered_map<std::uint32_t, Knowledge>;

  static void join(Knowledge& into, const Knowledge& more);
  std::uint32_t known(std::size_t thread, std::size_t other) const;
  bool acquired(const Addresses& from, const Access& a) const;
  void acquire(std::size_t thread, const void* address);
  void release(std::size_t thread, const void* address);

  std::uint32_t block_ = 0, first_block_ = 1;
  Knowledge clock_, at_barrier_;
  std::vector<std::vector<std::uint32_t>> in_warp_;  // [thread][lane of its warp]
  std::vector<Knowledge> by_atomics_;                // [thread]: learnt within the block
  std::vector<Addresses> sources_;  // [thread]: where it has learnt about other blocks
  Addresses sources_of_all_;        // the same, shared by a barrier
  bool fenced_ = false;             // whether the rest is in use in this block
  struct Fenced {
    Knowledge block, device;  // what its next atomic makes known
    Addresses sources;
  };
  std::vector<Fenced> fences_;
  Fenced fences_of_all_;
  std::unordered_map<const void*, Knowledge> released_in_block_;
  std::unordered_map<const void*, ByBlock> released_;
};

}  // namespace emulator
