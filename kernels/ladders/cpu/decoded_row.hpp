/// @file
/// A row of a model file as floats.
#pragma once

#include "ladders/cpu/blocks.hpp"

namespace lab::cpu_ladder {

// [region kernel]
template <class F>
void decode_row(const std::uint8_t* block, float* w, std::int64_t K) {
  for (std::int64_t k = 0; k < K; k += kBlock, block += F::kBytes) {
    F::codes(block, w + k);
    const float d = scale(block);
    for (int i = 0; i < kBlock; ++i) w[k + i] *= d;
  }
}
// [endregion]

}  // namespace lab::cpu_ladder
