/// @file
/// Weights in the packed order (kernels/cpu/pack.hpp): tiles of 16 rows, so that the lanes
/// of a vector are rows and a sum never crosses lanes.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/pack.hpp"
#include "lab/core/half.hpp"
#include "ladders/cpu/rungs.hpp"

namespace lab::cpu_ladder {

using cpu::kTileRows;

// [region kernel]
// Vectors that every x86-64 and every 64-bit Arm has: 16 rows are four of them.
using F4 = float __attribute__((vector_size(16)));
using I4 = std::int32_t __attribute__((vector_size(16)));
constexpr int kParts = kTileRows / 4;

template <class V>
V load(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// The scales of a unit's 16 rows, rows 4 * part and on.
inline F4 scales(const std::byte* unit, int part) {
  Half d[4];
  std::memcpy(d, unit + 8 * part, sizeof d);
  return F4{to_float(d[0]), to_float(d[1]), to_float(d[2]), to_float(d[3])};
}

/// 16 x f16, 8 planes of 16 x 4 bytes: the columns 4u to 4u + 3 of each row.
struct PackedQ8_0 {
  static constexpr int kBytes = 544;
  template <int kColumn>
  static F4 codes(const std::byte* unit, int part) {
    const I4 four = load<I4>(unit + 32 + 64 * (kColumn / 4) + 16 * part);
    return __builtin_convertvector((four << (24 - 8 * (kColumn % 4))) >> 24, F4);
  }
};

/// 16 x f16, 4 planes of 16 x 4 bytes: low nibbles columns 0 to 15, high ones 16 to 31.
struct PackedQ4_0 {
  static constexpr int kBytes = 288;
  template <int kColumn>
  static F4 codes(const std::byte* unit, int part) {
    const I4 four = load<I4>(unit + 32 + 64 * (kColumn % 16 / 4) + 16 * part);
    const I4 code = (four >> (8 * (kColumn % 4) + 4 * (kColumn / 16))) & 15;
    return __builtin_convertvector(code - 8, F4);
  }
};

/// Calls body.operator()<k>() for the columns k of a block.
template <class Body, int... kColumns>
void for_columns(std::integer_sequence<int, kColumns...>, Body&& body) {
  (body.template operator()<kColumns>(), ...);
}
// [endregion]

/// The units of a tile of rows.
inline const std::byte* packed_tile(const Operands& o, std::int64_t tile) {
  const DType dtype = o.w.file.dtype;
  return o.w.packed->packed() +
         tile * cpu::row_units(dtype, o.w.file.cols) * cpu::unit_bytes(dtype);
}
/// How many tiles N rows are.
inline std::int64_t tiles_of(std::int64_t N) { return (N + kTileRows - 1) / kTileRows; }

}  // namespace lab::cpu_ladder
