/// @file
/// What the trace flavour adds to the emulator. The plain flavour links no_tracer.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "simt/runtime.hpp"

namespace emulator {

class Worker;

/// Told about everything that orders, allocates or touches memory.
class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void launch_begin() = 0;
  virtual void block_begin(Worker& worker) = 0;
  virtual void block_end(Worker& worker) = 0;
  virtual void barrier(Worker& worker) = 0;
  virtual void warp_sync(Worker& worker, int warp, std::uint32_t mask) = 0;
  virtual void fence(Worker& worker, bool whole_device) = 0;
  virtual void atomic(Worker& worker, const void* p, std::size_t bytes, Location loc) = 0;
  virtual void access(Worker& worker, const void* p, std::size_t bytes, bool write,
                      Location loc) = 0;
  /// A cp.async has been issued: `to` is undefined until it is made.
  virtual void copy_issued(Worker& worker, void* to, std::size_t bytes, Location loc) = 0;
  /// A cp.async is made, as one read and one write.
  virtual void copy_made(Worker& worker, void* to, const void* from, std::size_t bytes,
                         std::size_t valid_bytes, Location loc) = 0;

  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* p) = 0;
  /// The host has given device memory a value, or (not `defined`) taken it away.
  virtual void host_write(void* p, std::size_t bytes, bool defined) = 0;

  virtual void add_to(Counters& counters) const = 0;
  virtual std::vector<LineTraffic> lines() const = 0;
  virtual void reset_counters() = 0;
};

/// The tracer of this program; null in the plain flavour.
Tracer* tracer();

}  // namespace emulator
