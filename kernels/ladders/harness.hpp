/// @file
/// Runs the rungs of a ladder, holds them to the definition, and counts or times them.
#pragma once

#include "ladders/problem.hpp"
#include "ladders/record.hpp"

namespace lab::ladders {

/// Counts the accesses of `work` on the emulator, trace flavour.
using Count = Traffic (*)(const std::function<void()>& work);
/// Seconds of a rung on a GPU.
using Time = double (*)(const Rung& rung, const Operands& o, Stream stream);

/// What a run of the ladders is done with; `count` or `time` is there.
struct Bench {
  Gpu gpu;
  Count count = nullptr;
  Time time = nullptr;
  double bandwidth = 0;          ///< of the GPU, measured: bytes/s
  std::vector<Rung> peers = {};  ///< of multiplications, by a library
};

/// Runs every rung of a ladder on a problem of this size.
/// @throws Error if the extents are not at least 1 or a kernel fails
Record climb(const Bench& bench, const Ladder& ladder, Size size);

}  // namespace lab::ladders
