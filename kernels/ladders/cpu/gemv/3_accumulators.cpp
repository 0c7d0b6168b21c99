#include "ladders/cpu/blocks.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
constexpr int kSums = 16;

template <class F>
void accumulators(const Operands& o) {
  const auto [T, N, K] = Size{o.x.shape[0], o.w.file.rows, o.w.file.cols};
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t n = 0; n < N; ++n) {
      const float* x = o.x.data + t * K;
      const std::uint8_t* block = file_row(o, n);
      float sums[kSums] = {};
      for (std::int64_t k = 0; k < K; k += kBlock, block += F::kBytes) {
        float code[kBlock];
        F::codes(block, code);
        const float d = scale(block);
        for (int half = 0; half < kBlock; half += kSums)
          for (int i = 0; i < kSums; ++i) sums[i] += x[k + half + i] * (d * code[half + i]);
      }
      float sum = 0;
      for (const float s : sums) sum += s;
      o.y.data[t * N + n] = sum;
    }
}
// [endregion]

void run(const Operands& o) {
  with_format<Q4_0, Q8_0>(o.w.file.dtype, [&]<class F>() { accumulators<F>(o); });
}

// [region prediction]
Cost predict(Size s, DType dtype) {
  return {.bytes = s.T * s.N * row_bytes(dtype, s.K),
          .multiplies = s.T * s.N * (s.K / 4) * 2};
}
// [endregion]

}  // namespace

Rung gemv_accumulators() {
  return {.name = "several sums",
          .file = "gemv/3_accumulators.cpp",
          .idea =
              "Sixteen sums instead of one. The source now says that the order is free, so "
              "the compiler adds four at a time and no addition waits for the last: the "
              "same bytes and fewer instructions.",
          .run = run,
          .predict = predict,
          .reads = Form::file};
}

}  // namespace lab::cpu_ladder
