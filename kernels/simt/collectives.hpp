/// @file
/// Barriers, fences, shuffles, votes, reductions and matches: every function in which CUDA
/// threads meet. Semantics: CUDA C++ Programming Guide, "Synchronization Functions", "Warp
/// Vote, Match, Reduce and Shuffle Functions".
#pragma once

#include "simt/runtime.hpp"

inline void __syncthreads(SIMT_LOC) {
  ::emulator::block_barrier(::emulator::BlockOp::sync, 0, loc);
}
inline int __syncthreads_count(int predicate, SIMT_LOC) {
  return ::emulator::block_barrier(::emulator::BlockOp::count, predicate, loc);
}
inline int __syncthreads_and(int predicate, SIMT_LOC) {
  return ::emulator::block_barrier(::emulator::BlockOp::all, predicate, loc);
}
inline int __syncthreads_or(int predicate, SIMT_LOC) {
  return ::emulator::block_barrier(::emulator::BlockOp::any, predicate, loc);
}
inline void __threadfence() { ::emulator::note_fence(true); }
inline void __threadfence_system() { ::emulator::note_fence(true); }
inline void __threadfence_block() { ::emulator::note_fence(false); }
inline void __nanosleep(unsigned) { ::emulator::yield(); }
[[noreturn]] inline void __trap() {
  ::emulator::device_fail("__trap()", "the kernel gave up");
}

namespace emulator {

/// A collective of values up to 8 bytes.
template <class Result, class T>
Result collective(const Collective& op, unsigned mask, T value, int arg, int width,
                  Location loc) {
  WarpCall call;
  call.in = to_bits(value);
  call.arg = arg;
  call.width = width;
  warp_collective(mask, op, call, loc);
  return from_bits<Result>(call.out);
}

}  // namespace emulator

inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_LOC) {
  ::emulator::WarpCall call;
  ::emulator::warp_collective(mask, ::emulator::kSyncwarp, call, loc);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_LOC) {
  return ::emulator::collective<T>(::emulator::kShflIdx, mask, value, source, width, loc);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_LOC) {
  return ::emulator::collective<T>(::emulator::kShflUp, mask, value, int(delta), width,
                                   loc);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_LOC) {
  return ::emulator::collective<T>(::emulator::kShflDown, mask, value, int(delta), width,
                                   loc);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SIMT_LOC) {
  return ::emulator::collective<T>(::emulator::kShflXor, mask, value, lane_mask, width,
                                   loc);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_LOC) {
  return ::emulator::collective<unsigned>(::emulator::kBallot, mask, predicate != 0, 0, 32,
                                          loc);
}
inline int __any_sync(unsigned mask, int predicate, SIMT_LOC) {
  return ::emulator::collective<int>(::emulator::kAny, mask, predicate != 0, 0, 32, loc);
}
inline int __all_sync(unsigned mask, int predicate, SIMT_LOC) {
  return ::emulator::collective<int>(::emulator::kAll, mask, predicate != 0, 0, 32, loc);
}

template <class T>
T __reduce_add_sync(unsigned mask, T value, SIMT_LOC) {
  static_assert(sizeof(T) == 4 && std::is_integral_v<T>, "int or unsigned");
  return ::emulator::collective<T>(::emulator::kReduceAdd, mask, value, 0, 32, loc);
}
template <class T>
T __reduce_min_sync(unsigned mask, T value, SIMT_LOC) {
  static_assert(sizeof(T) == 4 && std::is_integral_v<T>, "int or unsigned");
  return ::emulator::collective<T>(
      std::is_signed_v<T> ? ::emulator::kReduceMinSigned : ::emulator::kReduceMin, mask,
      value, 0, 32, loc);
}
template <class T>
T __reduce_max_sync(unsigned mask, T value, SIMT_LOC) {
  static_assert(sizeof(T) == 4 && std::is_integral_v<T>, "int or unsigned");
  return ::emulator::collective<T>(
      std::is_signed_v<T> ? ::emulator::kReduceMaxSigned : ::emulator::kReduceMax, mask,
      value, 0, 32, loc);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, SIMT_LOC) {
  return ::emulator::collective<unsigned>(::emulator::kReduceAnd, mask, value, 0, 32, loc);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, SIMT_LOC) {
  return ::emulator::collective<unsigned>(::emulator::kReduceOr, mask, value, 0, 32, loc);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, SIMT_LOC) {
  return ::emulator::collective<unsigned>(::emulator::kReduceXor, mask, value, 0, 32, loc);
}

template <class T>
unsigned __match_any_sync(unsigned mask, T value, SIMT_LOC) {
  return ::emulator::collective<unsigned>(::emulator::kMatchAny, mask, value, 0, 32, loc);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* all_equal, SIMT_LOC) {
  const auto equal =
      ::emulator::collective<unsigned>(::emulator::kMatchAll, mask, value, 0, 32, loc);
  *all_equal = equal != 0;
  return equal;
}
