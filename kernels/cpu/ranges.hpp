/// @file
/// How operations on elements and rows are divided among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lab/core/parallel.hpp"

namespace lab::cpu {

/// Elements worth a task: several microseconds, against the one that handing it over costs.
inline constexpr std::int64_t kElementsPerTask = 32768;

/// Calls body(t) for t in [0, n_rows).
template <class Body>
void for_rows(std::int64_t n_rows, std::int64_t row_size, Body&& body) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, kElementsPerTask / std::max<std::int64_t>(1, row_size));
  parallel_for(n_rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) body(t);
  });
}

}  // namespace lab::cpu
