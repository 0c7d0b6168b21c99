/// @file
/// The tracer: where an access goes, whether it may, and what it costs.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "simt/trace_clocks.hpp"
#include "simt/trace_memory.hpp"
#include "simt/trace_sites.hpp"
#include "simt/tracer.hpp"
#include "simt/worker.hpp"

namespace emulator {

/// Sees every memory access of the kernels, which are compiled with -fsanitize=thread but
/// not linked with ThreadSanitizer: trace_hooks.cpp defines the callbacks (the Linux
/// kernel's KCSAN uses the compilers the same way).
class MemoryTracer final : public Tracer {
 public:
  /// An access as an instruction makes it.
  struct Event {
    const void* address;
    std::size_t bytes;
    bool write, atomic;
    const void* pc;  ///< null: `loc` says where
    Location loc;
    bool counted = true;
    bool updates = false;  ///< a write that reads first
  };
  void on_access(Worker& worker, const Event& e);
  /// A volatile access takes part in what atomics and fences order.
  void volatile_access(Worker& worker, const void* p) {
    clocks_.atomic(worker.current_lane, p);
  }

  void launch_begin() override;
  void block_begin(Worker& worker) override;
  void block_end(Worker& worker) override;
  void barrier(Worker& worker) override;
  void warp_sync(Worker& worker, int warp, std::uint32_t mask) override;
  void fence(Worker& worker, bool whole_device) override;
  void atomic(Worker& worker, const void* p, std::size_t bytes, Location loc) override;
  void access(Worker& worker, const void* p, std::size_t bytes, bool write,
              Location loc) override;
  void copy_issued(Worker& worker, void* to, std::size_t bytes, Location loc) override;
  void copy_made(Worker& worker, void* to, const void* from, std::size_t bytes,
                 std::size_t valid_bytes, Location loc) override;
  void* allocate(std::size_t bytes) override;
  void release(void* p) override;
  void host_write(void* p, std::size_t bytes, bool defined) override;
  void add_to(Counters& counters) const override { sites_.add_to(counters); }
  std::vector<LineTraffic> lines() const override { return sites_.lines(); }
  void reset_counters() override { sites_.reset(); }

 private:
  /// Where an access goes.
  struct Target {
    enum Kind { uninteresting, global, dynamic_shared, static_shared, illegal } kind;
    Cell* cells = nullptr;   ///< of the whole space
    std::size_t offset = 0;  ///< bytes, in the cells and in the banks
    const Arena::Block* block = nullptr;
    int symbol = -1;  ///< of a static shared array
    bool shared() const { return kind == dynamic_shared || kind == static_shared; }
  };
  Target locate(Worker& worker, const Event& e);
  Target locate_static(const Event& e, std::size_t offset);
  bool static_array_is_left(Site& site, int symbol);
  void check_cells(Worker& worker, const Event& e, const Target& t, std::uint32_t site);
  void check_races(Worker& worker, const Event& e, const Cell& cell, std::uint8_t bytes,
                   std::uint32_t site);
  void note(Cell& cell, const Access& a, bool write, int thread);
  void prepare_shared(Worker& worker);

  std::string describe(const Worker& worker, const void* p);
  std::string actor(const Worker& worker, const Event& e, std::uint32_t site);
  void find(Worker& worker, const char* kind, std::uint32_t site, std::uint32_t other,
            const std::string& text);
  void find_race(Worker& worker, const Event& e, std::uint32_t site, const Access& other,
                 bool other_wrote);

  Arena arena_;
  Clocks clocks_;
  Sites sites_;
  std::vector<std::vector<Cell>> dynamic_cells_;  // by buffer
  std::vector<Cell> static_cells_;
  std::vector<int> symbol_at_;  // by offset / 4 in the TLS image: a shared array, or -1
  std::vector<int> owner_of_;   // by symbol: an id of the function it belongs to
  std::uint64_t launch_ = 0;
  std::set<std::pair<std::uint32_t, std::uint32_t>> found_;  // in this launch
};

/// The tracer, created at first use and never destroyed.
MemoryTracer& memory_tracer();

}  // namespace emulator
