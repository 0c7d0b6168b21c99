/// @file
/// Atomic functions on shared and global memory. Each returns the old value.
#pragma once

#include <algorithm>
#include <type_traits>

#include "simt/runtime.hpp"

namespace emulator {

/// *p = update(*p), indivisibly. @return the old value
template <class T, class Update>
T atomic_update(T* p, Update update, Location loc) {
  note_atomic(p, sizeof(T), loc);
  T old, wanted;
  __atomic_load(p, &old, __ATOMIC_ACQUIRE);
  do wanted = update(old);
  while (!__atomic_compare_exchange(p, &old, &wanted, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE));
  return old;
}

/// So that atomicAdd(float*, 1) takes the float that CUDA's overloads take.
template <class T>
using SameAs = std::type_identity_t<T>;

}  // namespace emulator

template <class T>
T atomicAdd(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T old) { return T(old + v); }, loc);
}
template <class T>
T atomicSub(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T old) { return T(old - v); }, loc);
}
template <class T>
T atomicMin(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T old) { return std::min(old, v); }, loc);
}
template <class T>
T atomicMax(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T old) { return std::max(old, v); }, loc);
}
template <class T>
T atomicAnd(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T old) { return T(old & v); }, loc);
}
template <class T>
T atomicOr(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T old) { return T(old | v); }, loc);
}
template <class T>
T atomicXor(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T old) { return T(old ^ v); }, loc);
}
template <class T>
T atomicExch(T* p, ::emulator::SameAs<T> v, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [v](T) { return v; }, loc);
}
/// old >= limit ? 0 : old + 1
inline unsigned atomicInc(unsigned* p, unsigned limit, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [limit](unsigned old) { return old >= limit ? 0 : old + 1; }, loc);
}
/// old == 0 or old > limit ? limit : old - 1
inline unsigned atomicDec(unsigned* p, unsigned limit, SIMT_LOC) {
  return ::emulator::atomic_update(
      p, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; }, loc);
}
/// Writes `v` if *p is `expected`. A failure lets others run, or a spin lock would starve
/// the fiber that holds the lock.
template <class T>
T atomicCAS(T* p, ::emulator::SameAs<T> expected, ::emulator::SameAs<T> v, SIMT_LOC) {
  ::emulator::note_atomic(p, sizeof(T), loc);
  T old = expected;
  if (!__atomic_compare_exchange(p, &old, &v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    ::emulator::yield();
  return old;
}
