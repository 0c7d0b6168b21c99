#include "ladders/attention/register_copy.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
// The kernel of the rung before with Tile<true>: piece p of row r lies at p ^ (r % 8), so
// that one piece of eight neighbouring rows is in eight different places.
constexpr auto run = run_register_copy<true>;
// [endregion]

// [region prediction]
Traffic predict(Size s) { return predict_tensor_tile(s, 1); }
// [endregion]

}  // namespace

Rung attention_swizzle() {
  return {
      .name = "swizzle",
      .file = "attention/4_swizzle.cu",
      .idea =
          "An exclusive or of two numbers in the address: the eight rows of an ldmatrix "
          "lie in 32 different banks, and it takes the 4 wavefronts that 512 bytes need. "
          "Padding would do the same for more shared memory. Nothing else changes.",
      .run = run,
      .predict = predict,
      .multiple_k = kDim,
      .longest = kDim,
      .bytes = 2,
      .tolerance = 1e-3};  // weights are rounded to f16
}

}  // namespace lab::LAB_GPU
