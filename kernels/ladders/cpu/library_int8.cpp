#include "ladders/cpu/library.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
void run(const Operands& o) { (*o.w.packed)(o.y, o.x, Activations::int8); }
// [endregion]

// [region prediction]
Cost predict(Size s, DType dtype) {
  // Four columns of 16 rows: two vectors, each multiplied to 16 bits and added in pairs by
  // another multiplication. Then to float, times both scales; -kMagic times a scale.
  return {.bytes = cpu::packed_bytes(dtype, s.N, s.K),
          .multiplies = units(s) * (s.T * (8 * 2 * 2 + 4) + 2)};
}
// [endregion]

}  // namespace

Rung library_int8() {
  return {.name = "AVX2 integers",
          .file = "library_int8.cpp",
          .idea =
              "Round x to 8 bits as well, for each 32 columns: codes are multiplied as "
              "they are, 32 bytes an instruction, without becoming floats "
              "(kernels/cpu/simd/linear_int8.inc). Half the multiplications again, and "
              "next to no decoding. The price is about half a percent of error.",
          .run = run,
          .predict = predict,
          .reads = Form::packed,
          .instruction_set = "avx2",
          .tolerance = kInt8Tolerance};
}

}  // namespace lab::cpu_ladder
