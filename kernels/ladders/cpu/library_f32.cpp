#include "ladders/cpu/library.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
void run(const Operands& o) { (*o.w.packed)(o.y, o.x, Activations::f32); }
// [endregion]

// [region prediction]
Cost predict(Size s, DType dtype) {
  // A unit of 16 rows: 32 columns and a scale, each two vectors of eight.
  return {.bytes = cpu::packed_bytes(dtype, s.N, s.K),
          .multiplies = units(s) * s.T * (32 + 1) * 2};
}
// [endregion]

}  // namespace

Rung library_f32() {
  return {.name = "AVX2 floats",
          .file = "library_f32.cpp",
          .idea =
              "The library's kernel with f32 activations, on AVX2: vectors of eight "
              "floats, and multiply and add in one instruction. Half the multiplications "
              "for the same bytes, and no additions of their own.",
          .run = run,
          .predict = predict,
          .reads = Form::packed,
          .instruction_set = "avx2"};
}

}  // namespace lab::cpu_ladder
