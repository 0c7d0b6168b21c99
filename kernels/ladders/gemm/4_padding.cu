#include "ladders/gemm/tiled.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
// The kernel of the rung before, with one unused float at the end of each row of a tile:
// row l starts l banks further on, and ws[l][i] is in bank (l + i) % 32.
constexpr auto run = run_tiled<33>;
// [endregion]

// [region prediction]
Traffic predict(Size s) {
  const auto blocks = s.T / 32 * (s.N / 32), steps = s.K / 32;
  const auto warp_steps = blocks * 32 * steps;
  return {.global_load = {.requests = warp_steps * 2, .units = warp_steps * (4 + 4)},
          .global_store = {.requests = blocks * 32, .units = blocks * 32 * 4},
          .shared_load = {.requests = warp_steps * 64, .units = warp_steps * 32 * (1 + 1)},
          .shared_store = {.requests = warp_steps * 2, .units = warp_steps * 2}};
}
// [endregion]

}  // namespace

Rung gemm_padding() {
  return {.name = "padding",
          .file = "gemm/4_padding.cu",
          .idea =
              "Rows of 33 floats put the 32 lanes' words in 32 different banks: one "
              "wavefront where there were 32. Nothing else changes.",
          .run = run,
          .predict = predict};
}

}  // namespace lab::LAB_GPU
