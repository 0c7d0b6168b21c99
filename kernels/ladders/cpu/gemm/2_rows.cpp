#include <vector>

#include "ladders/cpu/blocks.hpp"
#include "ladders/cpu/decoded_row.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
template <class F>
void rows(const Operands& o) {
  const auto [T, N, K] = Size{o.x.shape[0], o.w.file.rows, o.w.file.cols};
  std::vector<float> w(static_cast<std::size_t>(K));
  for (std::int64_t n = 0; n < N; ++n) {
    decode_row<F>(file_row(o, n), w.data(), K);
    for (std::int64_t t = 0; t < T; ++t) {
      float sum = 0;
      for (std::int64_t k = 0; k < K; ++k) sum += o.x.data[t * K + k] * w[std::size_t(k)];
      o.y.data[t * N + n] = sum;
    }
  }
}
// [endregion]

void run(const Operands& o) {
  with_format<Q4_0, Q8_0>(o.w.file.dtype, [&]<class F>() { rows<F>(o); });
}

// [region prediction]
Cost predict(Size s, DType dtype) {
  return {.bytes = s.N * row_bytes(dtype, s.K),
          .multiplies = s.N * (s.K / 4) * (1 + s.T)};  // by the scale; by every token's x
}
// [endregion]

}  // namespace

Rung gemm_rows() {
  return {.name = "decode a row once",
          .file = "gemm/2_rows.cpp",
          .idea =
              "Rows outside, tokens inside: a row is read from the file's blocks and "
              "decoded once, stays in the nearest cache, and meets every token. Bytes of "
              "weights no longer grow with tokens.",
          .run = run,
          .predict = predict,
          .reads = Form::file};
}

}  // namespace lab::cpu_ladder
