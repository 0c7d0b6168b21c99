#include <algorithm>

#include "ladders/cpu/packed.hpp"

namespace lab::cpu_ladder {
namespace {

// [region kernel]
template <class F>
void packed(const Operands& o) {
  const auto [T, N, K] = Size{o.x.shape[0], o.w.file.rows, o.w.file.cols};
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t tile = 0; tile < tiles_of(N); ++tile) {
      const std::byte* unit = packed_tile(o, tile);
      F4 sum[kParts] = {};
      for (std::int64_t k = 0; k < K; k += kBlock, unit += F::kBytes) {
        const float* x = o.x.data + t * K + k;
        F4 of_block[kParts] = {};
        for_columns(std::make_integer_sequence<int, kBlock>{}, [&]<int kColumn>() {
          for (int i = 0; i < kParts; ++i)
            of_block[i] += x[kColumn] * F::template codes<kColumn>(unit, i);
        });
        for (int i = 0; i < kParts; ++i) sum[i] += scales(unit, i) * of_block[i];
      }
      const std::int64_t n = std::min<std::int64_t>(kTileRows, N - tile * kTileRows);
      std::memcpy(o.y.data + t * N + tile * kTileRows, sum, std::size_t(n) * 4);
    }
}
// [endregion]

void run(const Operands& o) {
  with_format<PackedQ4_0, PackedQ8_0>(o.w.file.dtype, [&]<class F>() { packed<F>(o); });
}

// [region prediction]
Cost predict(Size s, DType dtype) {
  // A block of 16 rows: 32 columns and a scale, each four vectors.
  return {.bytes = s.T * cpu::packed_bytes(dtype, s.N, s.K),
          .multiplies = s.T * tiles_of(s.N) * (s.K / kBlock) * (32 + 1) * kParts};
}
// [endregion]

}  // namespace

Rung gemv_packed() {
  return {.name = "packed order",
          .file = "gemv/4_packed.cpp",
          .idea =
              "The same bytes in another order, once, at load: 16 rows side by side. A "
              "vector holds a column of different rows, so sums never cross lanes, one x "
              "serves 16 rows, and a scale is multiplied once a block.",
          .run = run,
          .predict = predict,
          .reads = Form::packed};
}

}  // namespace lab::cpu_ladder
