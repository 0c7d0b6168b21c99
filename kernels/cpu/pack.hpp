/// @file
/// The packed weights of Linear.
///
/// A tile is 16 rows; a kernel reads it from first byte to last, and tiles follow each
/// other. A tile is a sequence of units: 32 columns, or the 256 of a K format. For each of
/// the 16 rows:
///
///     F32   32 columns x [16 x f32]        F16   32 columns x [16 x f16]
///     BF16  16 column pairs x [16 x 2 bf16]
///     Q8_0  d | bytes                      IQ4_NL, Q4_0  d | nibbles
///     Q4_1  d | m | nibbles                Q5_0  d | fifth | nibbles
///     Q5_1  d | m | fifth | nibbles
///     Q2_K  d | dmin | 8 x (2 scales | 2 minima | pairs)
///     Q3_K  d | 8 x (2 scales | pairs | fifth)
///     Q4_K  d | dmin | 8 x (scale | minimum | nibbles)
///     Q5_K  d | dmin | 8 x (scale | minimum | nibbles | fifth)
///     Q6_K  d | 8 x (2 scales | nibbles | pairs)
///
/// d, m and dmin are [16 x f16], scales and minima [16 x i8], one for each row (2: one for
/// each 16 columns). Codes of 32 columns lie in planes of [16 x 32 bits]; byte i of plane u
/// holds
///
///     bytes    8 planes: column 4u + i, signed
///     nibbles  4 planes: low columns 4u + i, high 16 + 4u + i (the file's own bytes)
///     pairs    2 planes (u is the half): bits 2n and 2n + 1 of column 16u + 4n + i
///     fifth    1 plane: bit n of column 4n + i (Q3_K: the third bit)
///
/// so that a shift and a mask give four columns of 16 rows as bytes: what an 8-bit dot
/// product multiplies, and one step from floats. The scales are inside the stream because a
/// plane of their own halved the speed of decoding: two streams are more than the
/// prefetcher follows.
#pragma once

#include <cstdint>

#include "lab/core/buffer.hpp"
#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"

namespace lab::cpu {

inline constexpr int kTileRows = 16;  // one 512-bit vector of results
inline constexpr int kBlockCols = 32;

/// @return columns of a unit
constexpr std::int64_t unit_cols(DType dtype) {
  return dtype_info(dtype).block_size == 256 ? 256 : kBlockCols;
}

/// @return bytes of a unit of 16 rows
constexpr std::int64_t unit_bytes(DType dtype) {
  constexpr std::int64_t kBytes[kDTypeCount] = {2048,        // F32
                                                1024, 1024,  // F16, BF16
                                                288,  320,   // Q4_0, Q4_1
                                                352,  384,   // Q5_0, Q5_1
                                                544,         // Q8_0
                                                1600, 1824,  // Q2_K, Q3_K
                                                2368, 2880,  // Q4_K, Q5_K
                                                3360, 288};  // Q6_K, IQ4_NL
  return kBytes[static_cast<int>(dtype)];
}

/// Units of a row; at least one, so that a kernel always has something to add up.
constexpr std::int64_t row_units(DType dtype, std::int64_t cols) {
  const std::int64_t units = (cols + unit_cols(dtype) - 1) / unit_cols(dtype);
  return units > 0 ? units : 1;
}

/// @return bytes of the tiles of a matrix
constexpr std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols) {
  return (rows + kTileRows - 1) / kTileRows * row_units(dtype, cols) * unit_bytes(dtype);
}

/// Writes the tiles of `weights` to `packed` on n_threads() threads; rows and columns that
/// do not exist are zero.
void pack(HostWeightView weights, std::byte* packed);

}  // namespace lab::cpu
