/// @file
/// The cp.async interface of cuda_pipeline.h.
#pragma once

#include "simt/runtime.hpp"

/// @param zero_fill  how many of the last bytes are zeros instead of copied
inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes,
                                    std::size_t zero_fill = 0, SIMT_LOC) {
  ::emulator::cp_async(shared, global, bytes, bytes - zero_fill, loc);
}
inline void __pipeline_commit() { ::emulator::cp_async_commit(); }
inline void __pipeline_wait_prior(int n) { ::emulator::cp_async_wait(n); }
