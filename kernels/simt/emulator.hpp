/// @file
/// What a program asks of the emulator: how to run kernels, what went wrong, what they
/// moved.
///
/// The emulator executes CUDA kernels, compiled by the host compiler, one fiber per CUDA
/// thread. It is for correctness, never for speed: a barrier really waits, a shuffle really
/// exchanges, and what a GPU answers with a hang or with garbage becomes a report with file
/// and line. Two flavours: plain (library lab::simt) and trace (lab::simt_trace with
/// kernels compiled with the thread sanitizer's instrumentation), which sees every memory
/// access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulator {

/// In which order the threads of a block take turns. A correct kernel gives the same result
/// in each; a missing barrier usually does not.
enum class Order {
  forward,  ///< by thread index
  reverse,  ///< by thread index, last first
  random,   ///< drawn with Config::seed
  greedy,   ///< one warp runs ahead of the others as far as it can
};

/// How kernels are run. May be changed between launches.
struct Config {
  int workers = 1;               ///< OS threads that execute blocks; trace flavour: 1
  Order order = Order::forward;  ///< of the threads of a block
  std::uint64_t seed = 1;        ///< of Order::random
  std::size_t stack_bytes;       ///< of a CUDA thread; its local arrays live there
  bool poison = true;            ///< fill fresh memory with 0xFF, which is NaN as a float
  int timeout_s = 300;           ///< after which a launch is stopped and reported
  int max_threads_per_block = 1024;         ///< this and the next two: limits as of compute
  std::size_t max_static_smem = 48 * 1024;  ///< capability 8.0, bytes
  std::size_t max_dynamic_smem = 163 * 1024;  ///< bytes, with cudaFuncSetAttribute
  /// Trace flavour: bytes of device memory, as of the first allocation. What is known about
  /// them takes 20 times as much address space, though memory only for what kernels touch.
  std::size_t trace_bytes = std::size_t(1) << 30;
  Config();
};

/// The one configuration. It starts from the environment: SIMT_ORDER (forward, reverse,
/// random, greedy), SIMT_SEED, SIMT_WORKERS, SIMT_TIMEOUT (seconds).
Config& config();

/// What the last failed launch or call had to report, several findings one after another;
/// empty if nothing has failed. A failure never ends the process and never spoils the next
/// launch.
std::string last_report();

/// @return whether this is the trace flavour: memory counters and race reports exist
bool traces_memory();

/// Memory requests of one kind. A request is what the lanes of one warp ask for with one
/// instruction. It is served in units: 32-byte sectors for global memory, wavefronts (one
/// access to each of the 32 banks) for shared memory.
struct Traffic {
  std::uint64_t requests = 0;      ///< of whole warps
  std::uint64_t lanes = 0;         ///< threads that took part
  std::uint64_t units = 0;         ///< sectors or wavefronts that were needed
  std::uint64_t ideal_units = 0;   ///< the fewest that could have moved the same data
  std::uint64_t useful_bytes = 0;  ///< different bytes asked for, per request
};

/// What kernels did since reset_counters(). The Traffic members are zero in the plain
/// flavour.
struct Counters {
  std::uint64_t launches = 0, blocks = 0, threads = 0;
  std::uint64_t switches = 0;  ///< from one CUDA thread to another
  std::uint64_t barriers = 0;  ///< of blocks
  std::uint64_t warp_ops = 0;  ///< shuffles, votes, __syncwarp, ldmatrix and mma of warps
  std::uint64_t mma = 0;       ///< matrix multiply-accumulate instructions of warps
  std::uint64_t atomics = 0;   ///< of threads
  std::uint64_t async_bytes = 0;  ///< copied by cp.async
  Traffic global_load, global_store, shared_load, shared_store;
};
const Counters& counters();
void reset_counters();

/// Traffic of one source line.
struct LineTraffic {
  std::string line;  ///< "softmax.cu:41"
  bool shared;       ///< shared memory (wavefronts), else global (sectors)
  bool store;        ///< else a load
  Traffic traffic;
};
/// Trace flavour: what each source line moved since reset_counters(), by name; else empty.
std::vector<LineTraffic> line_traffic();
/// The same as a table for people. With SIMT_STATS=1 in the environment it is printed when
/// the program ends.
std::string line_traffic_table();

}  // namespace emulator
