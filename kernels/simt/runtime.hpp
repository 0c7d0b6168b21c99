/// @file
/// What the inline CUDA functions of these headers call. Kernels do not use it directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simt/emulator.hpp"
#include "simt/language.hpp"

namespace emulator {

/// A place in the source. The call of a constructor, as the default argument of a function,
/// makes GCC and Clang take the caller's line (std::source_location needs Clang 16).
struct Location {
  const char* file = "";
  unsigned line = 0;
  constexpr Location() = default;
  constexpr Location(const char* f, unsigned l) : file(f), line(l) {}
};
/// The last parameter of a function that reports where it was called.
#define SIMT_LOC             \
  ::emulator::Location loc = \
      ::emulator::Location(__builtin_FILE(), (unsigned)__builtin_LINE())

/// Ends the launch with a report about the calling CUDA thread, which does not continue.
/// @param kind  a few words: "barrier divergence"
[[noreturn]] void device_fail(const char* kind, const std::string& text);
/// Lets other threads of the block run.
void yield();
/// @return the calling thread's lane in its warp
int lane_id();

enum class BlockOp { sync, count, all, any };
/// __syncthreads() and its voting variants.
int block_barrier(BlockOp op, int predicate, Location loc);

/// What a lane brings to a warp collective, and what it takes home.
struct WarpCall {
  std::uint64_t in = 0, out = 0;
  int arg = 0, width = 32;
  int failed_lane = -1;  ///< set by a resolver: the lane that this one must not read
  const void* operand[3] = {};
  void* result = nullptr;
};
/// The calls of the lanes that take part; null for the others.
using WarpCalls = WarpCall* (&)[32];
/// Computes every lane's result; called once, when the last lane of the mask has arrived.
using Resolver = void (*)(WarpCalls calls, std::uint32_t mask);

/// One warp-wide operation; resolvers with the same id and mask meet.
struct Collective {
  const char* name;
  Resolver resolve;
  bool same_line = true;  ///< whether all lanes must have come from the same source line
  bool mma = false;       ///< counted as such
};
/// Blocks until all lanes of `mask` that have not exited have called it, then resolves.
void warp_collective(std::uint32_t mask, const Collective& op, WarpCall& call,
                     Location loc);

extern const Collective kSyncwarp, kShflIdx, kShflUp, kShflDown, kShflXor, kBallot, kAny,
    kAll, kReduceAdd, kReduceMin, kReduceMax, kReduceMinSigned, kReduceMaxSigned,
    kReduceAnd, kReduceOr, kReduceXor, kMatchAny, kMatchAll;

/// Copies and accounts for memory that an instruction reads or writes for one lane.
void read_memory(void* to, const void* from, std::size_t bytes, Location loc);
void write_memory(void* to, const void* from, std::size_t bytes, Location loc);
/// Accounts for an atomic operation; called before it. Lets others run now and then, so
/// that polling by atomics ends.
void note_atomic(const void* p, std::size_t bytes, Location loc);
/// __threadfence() and __threadfence_block().
void note_fence(bool whole_device);

/// cp.async: the copy is made at the wait, and until then the destination holds NaN: the
/// most hostile timing that the hardware is allowed, so that a missing wait shows.
/// @param bytes        4, 8 or 16
/// @param valid_bytes  copied; the rest of `bytes` is filled with zeros
void cp_async(void* shared, const void* global, std::size_t bytes, std::size_t valid_bytes,
              Location loc = Location(__builtin_FILE(), (unsigned)__builtin_LINE()));
void cp_async_commit();
void cp_async_wait(int groups_under_way);

/// The block's dynamic shared memory, declared once for each namespace that has kernels;
/// these then write plain CUDA: extern __shared__ __align__(16) unsigned char NAME[];
#define SIMT_DYNAMIC_SMEM(NAME)                                                    \
  alignas(1024) inline thread_local unsigned char NAME[::emulator::kSmemCapacity]; \
  inline const bool NAME##_registered =                                            \
      ::emulator::register_dynamic_smem([]() -> unsigned char* { return NAME; });
inline constexpr std::size_t kSmemCapacity = 227 * 1024;
using SmemFunction = unsigned char* (*)();
bool register_dynamic_smem(SmemFunction buffer_of_this_thread);
/// How much dynamic shared memory a launch of the kernel may ask for, bytes.
std::size_t& dynamic_smem_limit(const void* kernel);

template <class T>
std::uint64_t to_bits(T v) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

/// A kernel launch, ready to run.
struct Launch {
  dim3 grid, block;
  std::size_t smem = 0;
  const void* kernel = nullptr;
  void (*call)(const void* arguments) = nullptr;  ///< runs the kernel for one thread
  const void* arguments = nullptr;
  std::size_t argument_bytes = 0;
};

}  // namespace emulator
