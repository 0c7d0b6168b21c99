#include "ladders/cpu/blocks.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
template <class F>
void blocks(const Operands& o) {
  const auto [T, N, K] = Size{o.x.shape[0], o.w.file.rows, o.w.file.cols};
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t n = 0; n < N; ++n) {
      const float* x = o.x.data + t * K;
      const std::uint8_t* block = file_row(o, n);
      float sum = 0;
      for (std::int64_t k = 0; k < K; k += kBlock, block += F::kBytes) {
        float code[kBlock];
        F::codes(block, code);
        const float d = scale(block);
        for (int i = 0; i < kBlock; ++i) sum += x[k + i] * (d * code[i]);
      }
      o.y.data[t * N + n] = sum;
    }
}
// [endregion]

void run(const Operands& o) {
  with_format<Q4_0, Q8_0>(o.w.file.dtype, [&]<class F>() { blocks<F>(o); });
}

// [region prediction]
Cost predict(Size s, DType dtype) {
  return {.bytes = s.T * s.N * row_bytes(dtype, s.K),
          .multiplies = s.T * s.N * (s.K / 4) * 2};  // by the scale, by x
}
// [endregion]

}  // namespace

Rung gemv_blocks() {
  return {.name = "decode in the loop",
          .file = "gemv/2_blocks.cpp",
          .idea =
              "Read the file's blocks and decode them where they are used: a seventh of "
              "the bytes for Q4_0, more instructions. The additions still wait for each "
              "other, so expect little.",
          .run = run,
          .predict = predict,
          .reads = Form::file};
}

}  // namespace lab::cpu_ladder
