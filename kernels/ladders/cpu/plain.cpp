#include "ladders/cpu/rungs.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
void run(const Operands& o) {
  const auto [T, N, K] = Size{o.x.shape[0], o.w.file.rows, o.w.file.cols};
  const float *x = o.x.data, *w = o.w.decoded;
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t n = 0; n < N; ++n) {
      float sum = 0;
      for (std::int64_t k = 0; k < K; ++k) sum += x[t * K + k] * w[n * K + k];
      o.y.data[t * N + n] = sum;
    }
}
// [endregion]

// [region prediction]
Cost predict(Size s, DType) {
  // Every token reads all weights; four products at a time, as far as the compiler dares.
  return {.bytes = s.T * s.N * s.K * 4, .multiplies = s.T * s.N * s.K / 4};
}
// [endregion]

}  // namespace

Rung plain() {
  return {
      .name = "plain loops",
      .file = "plain.cpp",
      .idea =
          "The definition: three loops over weights that were decoded to f32 in advance. "
          "Sums must be added in the order of the source, so each addition waits for "
          "the one before.",
      .run = run,
      .predict = predict,
      .reads = Form::decoded};
}

}  // namespace lab::cpu_ladder
