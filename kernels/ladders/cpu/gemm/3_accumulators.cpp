#include <vector>

#include "ladders/cpu/decoded_row.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
constexpr int kSums = 16;

template <class F>
void accumulators(const Operands& o) {
  const auto [T, N, K] = Size{o.x.shape[0], o.w.file.rows, o.w.file.cols};
  std::vector<float> row(static_cast<std::size_t>(K));
  float* w = row.data();
  for (std::int64_t n = 0; n < N; ++n) {
    decode_row<F>(file_row(o, n), w, K);
    for (std::int64_t t = 0; t < T; ++t) {
      const float* x = o.x.data + t * K;
      float sums[kSums] = {};
      for (std::int64_t k = 0; k < K; k += kSums)
        for (int i = 0; i < kSums; ++i) sums[i] += x[k + i] * w[k + i];
      float sum = 0;
      for (const float s : sums) sum += s;
      o.y.data[t * N + n] = sum;
    }
  }
}
// [endregion]

void run(const Operands& o) {
  with_format<Q4_0, Q8_0>(o.w.file.dtype, [&]<class F>() { accumulators<F>(o); });
}

// [region prediction]
Cost predict(Size s, DType dtype) {
  return {.bytes = s.N * row_bytes(dtype, s.K), .multiplies = s.N * (s.K / 4) * (1 + s.T)};
}
// [endregion]

}  // namespace

Rung gemm_accumulators() {
  return {.name = "several sums",
          .file = "gemm/3_accumulators.cpp",
          .idea =
              "Sixteen sums instead of one, as in gemv: the same products and bytes, but "
              "additions go four at a time and do not wait for each other. Now two loads "
              "for one multiplication are the limit.",
          .run = run,
          .predict = predict,
          .reads = Form::file};
}

}  // namespace lab::cpu_ladder
