/// @file
/// What every rung includes.
#pragma once

#include <tuple>

#include "cuda/compat.hpp"
#include "ladders/ladder.hpp"

namespace lab::LAB_GPU {

using ladders::Operands, ladders::Rung, ladders::Size, ladders::Traffic;

/// Threads of a block, and its warps, in the ladders that give each row a block.
inline constexpr int kBlock = 256, kWarps = kBlock / 32;

/// @return {T, N, K}: n_tokens, rows of w, columns of w. Elements are counted in `int`, as
///         GPUs like it: an operand has fewer than 2^31.
inline std::tuple<int, int, int> extents(const Operands& o) {
  return {int(o.x.shape[0]), int(o.w.shape[0]), int(o.x.shape[1])};
}

/// @return how many tiles of extent `tile` cover `extent`
inline unsigned tiles(int extent, int tile) { return unsigned(ceil_div(extent, tile)); }

}  // namespace lab::LAB_GPU
