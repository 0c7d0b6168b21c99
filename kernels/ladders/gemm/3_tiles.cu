#include "ladders/gemm/tiled.hpp"

namespace lab::LAB_GPU {
namespace {

// [region prediction]
Traffic predict(Size s) {
  const auto blocks = s.T / 32 * (s.N / 32), steps = s.K / 32;
  const auto warp_steps = blocks * 32 * steps;  // 32 warps a block
  return {.global_load = {.requests = warp_steps * 2, .units = warp_steps * (4 + 4)},
          .global_store = {.requests = blocks * 32, .units = blocks * 32 * 4},
          // xs[row][i] is one word for all; ws[lane][i] is 32 words of one bank
          .shared_load = {.requests = warp_steps * 64, .units = warp_steps * 32 * (1 + 32)},
          .shared_store = {.requests = warp_steps * 2, .units = warp_steps * 2}};
}
// [endregion]

}  // namespace

Rung gemm_tiles() {
  return {
      .name = "shared tiles",
      .file = "gemm/3_tiles.cu",
      .idea =
          "A block computes 32 x 32 results from tiles in shared memory, so that every "
          "element it loads is used 32 times: 32 times fewer sectors. But lane l reads "
          "ws[l][i], 32 floats from its neighbour: all 32 lanes want the same bank, and "
          "each read takes 32 wavefronts.",
      .run = run_tiled<32>,
      .predict = predict};
}

}  // namespace lab::LAB_GPU
