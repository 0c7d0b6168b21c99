/// @file
/// The last rungs are the library's own kernel, cpu::Linear, held to an instruction set.
#pragma once

#include "cpu/pack.hpp"
#include "ladders/cpu/rungs.hpp"

namespace lab::cpu_ladder {

/// Units of 16 rows and 32 columns in the packed weights.
inline std::int64_t units(Size s) {
  return (s.N + cpu::kTileRows - 1) / cpu::kTileRows * (s.K / kBlock);
}

}  // namespace lab::cpu_ladder
