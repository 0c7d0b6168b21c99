/// @file
/// Instructions that access memory, and what a GPU's memory system would do for them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/runtime.hpp"

namespace emulator {

/// What the lanes of a warp ask for with one execution of an instruction.
struct Request {
  std::uint32_t mask = 0;
  std::uint32_t size = 0;  ///< bytes for each lane
  std::uint64_t address[32];
};

/// The sectors that a request for global memory needs, and the fewest possible.
Traffic global_traffic(const Request& r);
/// The wavefronts that a request for shared memory needs: 32 banks of 4 bytes; 8-byte
/// accesses are served by half warps, 16-byte accesses by quarter warps.
Traffic shared_traffic(const Request& r);

/// One load or store instruction, or an intrinsic's load or store on one source line.
class Site {
 public:
  Site(const void* pc, Location loc, bool store, bool shared)
      : pc_(pc), loc_(loc), store_(store), shared_(shared) {}

  /// Adds one thread's access. A warp's accesses belong to the same request if they are
  /// their threads' n-th at this site, whatever the order of the threads.
  void record(int thread, int threads, std::uint64_t address, std::uint32_t size);
  /// Settles the requests that not all lanes have joined.
  void end_block();
  void reset() { traffic_ = {}; }

  std::string line() const;
  const void* pc() const { return pc_; }
  bool store() const { return store_; }
  bool shared() const { return shared_; }
  const Traffic& traffic() const { return traffic_; }

  bool used = false;               ///< in this block
  int owner = -1;                  ///< of the static shared array it has accessed, an id
  std::uint64_t owner_launch = 0;  ///< when `owner` was set

 private:
  struct Queue {
    std::deque<Request> open;
    std::uint32_t settled = 0;
  };
  void settle(Queue& queue);

  const void* pc_;
  Location loc_;
  bool store_, shared_;
  Traffic traffic_;
  std::vector<std::uint32_t> executed_;  // by thread
  std::vector<Queue> queues_;            // by warp
};

/// All sites of the program.
class Sites {
 public:
  /// The site of an instruction; `pc` is the key, or `loc` if it is null.
  std::uint32_t find(const void* pc, Location loc, bool store, bool shared);
  Site& operator[](std::uint32_t index) { return *sites_[index]; }
  /// Site::record of one of them.
  void record(std::uint32_t site, int thread, int threads, std::uint64_t address,
              std::uint32_t size);
  void end_block();
  void reset();
  void add_to(Counters& counters) const;
  std::vector<LineTraffic> lines() const;

 private:
  struct Cached {
    std::uint64_t key = 0;
    std::uint32_t index = 0;
  };
  static constexpr std::size_t kCache = 4096;
  std::vector<Cached> cache_ = std::vector<Cached>(kCache);
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  std::vector<std::unique_ptr<Site>> sites_;
  std::vector<Site*> used_;  // in this block
};

}  // namespace emulator
