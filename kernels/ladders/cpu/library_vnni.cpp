#include "ladders/cpu/library.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
void run(const Operands& o) { (*o.w.packed)(o.y, o.x, Activations::int8); }
// [endregion]

// [region prediction]
Cost predict(Size s, DType dtype) {
  // vpdpbusd: four columns of 16 rows at once. Then to float, times both scales.
  return {.bytes = cpu::packed_bytes(dtype, s.N, s.K),
          .multiplies = units(s) * (s.T * (8 + 2) + 1)};
}
// [endregion]

}  // namespace

Rung library_vnni() {
  return {
      .name = "AVX-512 VNNI",
      .file = "library_vnni.cpp",
      .idea =
          "The same kernel text with 64-byte vectors and one instruction that multiplies "
          "bytes and adds four products to a 32-bit sum. A quarter of the multiplications: "
          "with one token, memory is now the limit and nothing but fewer bytes helps.",
      .run = run,
      .predict = predict,
      .reads = Form::packed,
      .instruction_set = "avx512_vnni",
      .tolerance = kInt8Tolerance};
}

}  // namespace lab::cpu_ladder
