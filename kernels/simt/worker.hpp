/// @file
/// A worker: an OS thread's state while it executes thread blocks, one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/fiber.hpp"
#include "simt/runtime.hpp"

namespace emulator {

/// A cp.async that has been issued and not yet made.
struct PendingCopy {
  void* to;
  const void* from;
  std::uint32_t bytes, valid_bytes;
  unsigned group;
  Location loc;
};

/// What a CUDA thread is doing.
enum class LaneState : unsigned char { idle, ready, running, at_block, at_warp, done };

/// One CUDA thread of the block.
struct Lane {
  uint3 index{};
  std::uint32_t mask = 0;  ///< this and the next three: the collective it waits in
  const Collective* op = nullptr;
  WarpCall* call = nullptr;
  Location loc;
  unsigned copy_group = 0;
  std::vector<PendingCopy> copies;
};

struct Warp {
  std::uint32_t waiting = 0, exited = 0;
};

/// A range of a worker's shared memory.
struct SharedRange {
  unsigned char* begin;
  std::size_t bytes;
};

/// Thrown in a CUDA thread that has failed, to leave its kernel. The block's other threads
/// are left on their stacks: kernels hold no resources.
struct BlockAbandoned {};

class Worker {
 public:
  Worker();
  /// The worker of the calling OS thread; null on a thread that is none.
  static Worker* current();
  void become_current();

  void start_launch(const Launch& launch);
  /// @param ordinal  counts blocks over all launches
  void run_block(uint3 block, std::uint64_t ordinal);
  bool failed() const { return failed_; }

  int barrier(BlockOp op, int predicate, Location loc);
  void collective(std::uint32_t mask, const Collective& op, WarpCall& call, Location loc);
  void yield();
  /// Ends the block with a report.
  [[noreturn]] void fail(const char* kind, const std::string& text);
  /// Reports; the block goes on, no further block is started.
  void report(const char* kind, const std::string& text);
  /// "thread (1,0,0) of block (2,0,0)"
  std::string describe(int lane) const;
  /// Continues after a signal that ended the running thread (faults.cpp).
  [[noreturn]] void after_signal();

  Lane& lane() { return lanes[std::size_t(current_lane)]; }
  bool on_fiber_stack(const void* p) const { return stacks_.contains(p); }

  const Launch* launch = nullptr;
  std::uint64_t block_ordinal = 0;
  int current_lane = 0;
  std::vector<Lane> lanes;
  std::vector<Warp> warps;
  std::size_t dynamic_smem = 0;              ///< bytes that the launch asked for
  std::vector<unsigned char*> smem_buffers;  ///< where they are: dynamic_smem_buffers()
  unsigned atomics_in_a_row = 0;
  Counters counts;
  std::atomic<bool> expired{false};    ///< the launch has run for too long
  std::atomic<bool> in_runtime{true};  ///< no kernel code is running
  const void *fault_address = nullptr, *fault_pc = nullptr;
  int fault_signal = 0;
  /// An exception could not pass through the caller, a callback of the compiler.
  bool in_foreign_frame = false;

 private:
  struct Barrier {
    int arrived = 0, votes = 0, first = 0;
    int result = 0, participants = 0;
    BlockOp op{};
    Location loc;
  };

  static void fiber_entry();
  [[noreturn]] void fiber_loop();
  [[noreturn]] void abandon_block();
  void prepare(int n);
  void remake_fibers();
  void start_order(int n);
  int take_fiber();
  void enter(int lane);
  int next_lane();
  int random_lane();
  void make_ready(int lane, bool from_warp);
  void wait();
  void continue_with(int lane);
  void lane_exit();
  void release_barrier();
  bool complete_collective(int warp, std::uint32_t mask, int last);
  [[noreturn, gnu::cold]] void fail_call(std::uint32_t mask, const Collective& op,
                                         const WarpCall& call, Location loc);
  [[noreturn, gnu::cold]] void fail_shuffle(std::uint32_t mask, const Collective& op,
                                            const WarpCall& call, Location loc);
  [[noreturn, gnu::cold]] void fail_divergence(int first, int other);
  [[noreturn, gnu::cold]] void fail_barrier(Location loc);
  void poison_shared();
  void learn_shared();
  void report_deadlock();
  void report_signal();
  std::string waiting_place(int lane) const;

  bool failed_ = false;
  int live_ = 0;
  Barrier barrier_;
  // Compact: touched at every switch.
  std::vector<LaneState> state_;
  std::vector<short> fiber_of_;

  FiberStacks stacks_;
  std::vector<Fiber> fibers_;
  std::vector<short> free_fibers_;
  Fiber own_;

  Order order_ = Order::forward;
  std::uint64_t random_ = 1;
  std::vector<int> ready_;  // a queue; ready_head_ is its front
  std::size_t ready_head_ = 0;
  std::vector<int> start_order_;
  std::size_t started_ = 0;
  std::vector<int> eager_;  // Order::greedy: lanes that a warp collective has released
  // The static shared arrays that each kernel has been seen to write.
  std::unordered_map<const void*, std::vector<SharedRange>> shared_of_;
  bool learning_ = false;
};

/// While it exists, the worker runs the emulator's code and not a kernel's.
class RuntimeScope {
 public:
  explicit RuntimeScope(Worker& worker) : worker_(worker) {
    worker.in_runtime.store(true, std::memory_order_relaxed);
    if (worker.expired.load(std::memory_order_relaxed)) [[unlikely]]
      expire();
  }
  ~RuntimeScope() { worker_.in_runtime.store(false, std::memory_order_relaxed); }
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  [[noreturn]] void expire();
  Worker& worker_;
};

/// Whether two calls come from the same line.
inline bool same_place(const Location& a, const Location& b) {
  return a.line == b.line && (a.file == b.file || !std::strcmp(a.file, b.file));
}

/// The worker whose kernel calls the emulator.
/// @throws std::logic_error if host code calls it: there is no launch that could fail
Worker& calling_worker(const char* function);

/// This thread's dynamic shared memory buffers, one for each SIMT_DYNAMIC_SMEM.
std::vector<unsigned char*> dynamic_smem_buffers();
/// This thread's static __shared__ arrays.
const std::vector<SharedRange>& static_shared_arrays();

}  // namespace emulator
