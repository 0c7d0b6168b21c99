/// @file
/// The blocks of a model file: 32 weights of a row as a scale (f16) and 32 codes.
#pragma once

#include <cstdint>
#include <cstring>

#include "lab/core/half.hpp"
#include "ladders/cpu/rungs.hpp"

namespace lab::cpu_ladder {

// [region kernel]
/// The scale of a block.
inline float scale(const std::uint8_t* block) {
  Half d;
  std::memcpy(&d, block, sizeof d);
  return to_float(d);
}

/// 34 bytes: scale, 32 signed bytes.
struct Q8_0 {
  static constexpr int kBytes = 34;
  static void codes(const std::uint8_t* block, float* code) {
    for (int i = 0; i < kBlock; ++i) code[i] = std::int8_t(block[2 + i]);
  }
};

/// 18 bytes: scale, 16 bytes with a low nibble (weights 0 to 15) and a high one (16 to 31).
struct Q4_0 {
  static constexpr int kBytes = 18;
  static void codes(const std::uint8_t* block, float* code) {
    for (int i = 0; i < 16; ++i) {
      code[i] = float((block[2 + i] & 15) - 8);
      code[16 + i] = float((block[2 + i] >> 4) - 8);
    }
  }
};
// [endregion]

/// The first block of row r.
inline const std::uint8_t* file_row(const Operands& o, std::int64_t r) {
  return reinterpret_cast<const std::uint8_t*>(o.w.file.row(r));
}

}  // namespace lab::cpu_ladder
