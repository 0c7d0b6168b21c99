#include "ladders/cpu/panels.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
void run(const Operands& o) {
  with_format<PackedQ4_0, PackedQ8_0>(o.w.file.dtype, [&]<class F>() { panels<F, 1>(o); });
}
// [endregion]

// [region prediction]
constexpr auto predict = panels_cost;
// [endregion]

}  // namespace

Rung gemm_panels() {
  return {.name = "packed panels",
          .file = "gemm/4_panels.cpp",
          .idea =
              "Pack 16 rows side by side, so that the lanes of a vector are rows and one x "
              "serves all 16. Decode 256 columns of them into 16 KiB that stay in the L1 "
              "cache, once for all tokens. The same products; x comes from the caches a "
              "sixteenth as often, and no sum crosses lanes.",
          .run = run,
          .predict = predict,
          .reads = Form::packed};
}

}  // namespace lab::cpu_ladder
