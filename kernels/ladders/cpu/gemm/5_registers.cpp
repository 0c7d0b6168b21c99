#include "ladders/cpu/panels.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
void run(const Operands& o) {
  with_format<PackedQ4_0, PackedQ8_0>(o.w.file.dtype, [&]<class F>() { panels<F, 2>(o); });
}
// [endregion]

// [region prediction]
constexpr auto predict = panels_cost;
// [endregion]

}  // namespace

Rung gemm_registers() {
  return {.name = "register tile",
          .file = "gemm/5_registers.cpp",
          .idea =
              "Two tokens at a time: 2 x 16 sums fill half of the 16 vector registers, and "
              "every weight that is loaded is multiplied twice. The same multiplications "
              "with fewer loads between them.",
          .run = run,
          .predict = predict,
          .reads = Form::packed};
}

}  // namespace lab::cpu_ladder
