/// @file
/// The benches that a program can have: of the emulator, which counts, and of a GPU, which
/// is timed. Included once, by the program: it is linked with the flavours it names.
#pragma once

#include "ladders/harness.hpp"
#include "simt/emulator.hpp"

namespace lab::ladders {

inline constexpr Gpu kSimt{simt::allocate, simt::release, simt::copy_to_device,
                           simt::copy_to_host, simt::synchronize};

/// Counts with the emulator's trace flavour.
inline Traffic count_on_simt(const std::function<void()>& work) {
  emulator::reset_counters();
  work();
  const emulator::Counters& c = emulator::counters();
  const auto access = [](const emulator::Traffic& t) {
    return Access{std::int64_t(t.requests), std::int64_t(t.units)};
  };
  return {access(c.global_load), access(c.global_store), access(c.shared_load),
          access(c.shared_store)};
}

#ifdef LAB_HAS_CUDA
inline constexpr Gpu kCuda{cuda::allocate, cuda::release, cuda::copy_to_device,
                           cuda::copy_to_host, cuda::synchronize};
#endif

}  // namespace lab::ladders
