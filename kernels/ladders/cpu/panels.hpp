/// @file
/// The gemm over panels, for one token at a time or several.
#pragma once

#include <algorithm>
#include <vector>

#include "ladders/cpu/packed.hpp"

namespace lab::cpu_ladder {

// [region kernel]
constexpr std::int64_t kPanel = 256;  // columns: 16 rows of them are 16 KiB, half of an L1

/// `columns` columns of a tile as floats, column by column.
template <class F>
void unpack(const std::byte* unit, std::int64_t columns, F4 (*panel)[kParts]) {
  for (std::int64_t k = 0; k < columns; k += kBlock, unit += F::kBytes)
    for (int i = 0; i < kParts; ++i) {
      const F4 d = scales(unit, i);
      for_columns(std::make_integer_sequence<int, kBlock>{}, [&]<int kColumn>() {
        panel[k + kColumn][i] = d * F::template codes<kColumn>(unit, i);
      });
    }
}

/// Adds a panel's part to the sums of kTokens tokens.
template <int kTokens>
void multiply_panel(const F4 (*w)[kParts], std::int64_t columns, const float* x,
                    std::int64_t K, F4 (*y)[kParts]) {
  F4 sum[kTokens][kParts];
  std::memcpy(sum, y, sizeof sum);
  for (std::int64_t k = 0; k < columns; ++k)
    for (int t = 0; t < kTokens; ++t)
      for (int i = 0; i < kParts; ++i) sum[t][i] += x[t * K + k] * w[k][i];
  std::memcpy(y, sum, sizeof sum);
}

template <class F, int kTokens>
void panels(const Operands& o) {
  const auto [T, N, K] = Size{o.x.shape[0], o.w.file.rows, o.w.file.cols};
  F4 panel[kPanel][kParts];
  std::vector<F4> sums(static_cast<std::size_t>(T * kParts));
  const auto y = reinterpret_cast<F4(*)[kParts]>(sums.data());
  for (std::int64_t tile = 0; tile < tiles_of(N); ++tile) {
    std::fill(sums.begin(), sums.end(), F4{});
    for (std::int64_t k = 0; k < K; k += kPanel) {
      const std::int64_t columns = std::min(kPanel, K - k);
      unpack<F>(packed_tile(o, tile) + k / kBlock * F::kBytes, columns, panel);
      const float* x = o.x.data + k;
      std::int64_t t = 0;
      for (; t + kTokens <= T; t += kTokens)
        multiply_panel<kTokens>(panel, columns, x + t * K, K, y + t);
      for (; t < T; ++t) multiply_panel<1>(panel, columns, x + t * K, K, y + t);
    }
    const std::int64_t n = std::min<std::int64_t>(kTileRows, N - tile * kTileRows);
    for (std::int64_t t = 0; t < T; ++t)
      std::memcpy(o.y.data + t * N + tile * kTileRows, y[t], std::size_t(n) * 4);
  }
}
// [endregion]

// [region prediction]
/// A weight is multiplied by its scale once, and by every token's x, four rows at a time.
inline Cost panels_cost(Size s, DType dtype) {
  return {.bytes = cpu::packed_bytes(dtype, s.N, s.K),
          .multiplies = tiles_of(s.N) * s.K * kParts * (1 + s.T)};
}
// [endregion]

}  // namespace lab::cpu_ladder
