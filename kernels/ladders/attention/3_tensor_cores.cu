#include "ladders/attention/register_copy.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr auto run = run_register_copy<false>;
// [endregion]

// [region prediction]
/// The eight rows that one ldmatrix address group reads are 128 bytes apart: the same four
/// banks, eight times.
Traffic predict(Size s) { return predict_tensor_tile(s, 8); }
// [endregion]

}  // namespace

Rung attention_tensor_cores() {
  return {
      .name = "tensor cores",
      .file = "attention/3_tensor_cores.cu",
      .idea =
          "q, k and v in f16, sums in f32; a warp takes 16 rows and 64 keys a step, and "
          "both products are mma instructions. The scores leave the first as the second "
          "wants its left operand: they need no shared memory. Twice the rows a block and "
          "half the bytes: a quarter of the traffic, once there are many keys. But the "
          "tiles lie as in global memory, and every ldmatrix meets each bank eight times.",
      .run = run,
      .predict = predict,
      .multiple_k = kDim,
      .longest = kDim,
      .bytes = 2,
      .tolerance = 1e-3};  // weights are rounded to f16
}

}  // namespace lab::LAB_GPU
