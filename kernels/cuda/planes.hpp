/// @file
/// The weights of a Linear in device memory.
///
/// The blocks of a file have 18, 20, 34, ... bytes: a GPU that read them as they lie could
/// use no aligned vector load. They are taken apart into planes, each row-major and without
/// gaps, so that neighbouring lanes read neighbouring bytes. Every row is B blocks of 32
/// columns; columns that do not exist are zero.
///
///     codes   (rows, B, bytes)    what all weights have: 8 to 128 bytes a block
///     extra   (rows, B, bytes)    the bits that do not fit there
///     scales  (rows, B, bytes)    one or two for each block
///     super   (rows, B/8, bytes)  d and dmin of a K format; BF16, F32: one f32 for each
///     row
///
///             codes    extra    scales         super            bits per weight (file)
///     F32     32 f32   -        -              row factor       32     (32)
///     F16     32 f16   -        -              -                16     (16)
///     BF16    32 bf16  -        -              row factor       16     (16)
///     Q8_0    bytes    -        d              -                8.5    (8.5)
///     Q4_0    nibbles  -        d              -                4.5    (4.5)
///     IQ4_NL  nibbles  -        d              -                4.5    (4.5)
///     Q4_1    nibbles  -        d m            -                5      (5)
///     Q5_0    nibbles  bits     d              -                5.5    (5.5)
///     Q5_1    nibbles  bits     d m            -                6      (6)
///     Q2_K    pairs    -        2 x u4 u4      d dmin           2.625  (2.625)
///     Q3_K    pairs    bits     2 x i8         d                3.5625 (3.4375)
///     Q4_K    nibbles  -        u8 u8          d dmin           4.625  (4.5)
///     Q5_K    nibbles  bits     u8 u8          d dmin           5.625  (5.5)
///     Q6_K    nibbles  pairs    2 x i8         d                6.5625 (6.5625)
///
/// d, m and dmin are f16. "2 x": one for each half of a block; "u8 u8" are the scale and
/// the minimum, "u4 u4" the same in one byte, the scale low. Codes are unsigned (Q8_0: code
/// + 128). A block's codes are words of 32 bits, of which byte i holds
///
///     bytes    word j (of 8): column 4j + i
///     nibbles  word u (of 4): column 8u + i low, column 8u + 4 + i high
///     pairs    word u (of 2): bits 2n and 2n + 1 are column 16u + 4n + i
///     bits     one word: bit n is column 4n + i
///
/// so that a shift and a mask give the codes of four neighbouring columns as four bytes, a
/// "quad", and so that the words of 16 neighbouring columns lie together.
///
/// The row factor is the power of two that brings the row's largest magnitude to [2^14,
/// 2^15): the multiplication on tensor cores makes f16 of such a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"

namespace lab {

inline constexpr std::int64_t kPlaneBlock = 32;  // columns of a block
enum PlaneName { kCodes, kExtra, kScales, kSuper, kPlanes };

/// Where the planes of a matrix lie in its memory.
struct PlaneLayout {
  std::int64_t blocks = 0;               ///< of a row
  std::int64_t row_bytes[kPlanes] = {};  ///< of a row in each plane
  std::int64_t offset[kPlanes] = {};     ///< of each plane, a multiple of 256
  std::int64_t bytes = 0;                ///< of all planes
};

/// @return the layout of a matrix of whole blocks
PlaneLayout plane_layout(DType dtype, std::int64_t rows, std::int64_t cols);

/// Packs rows [first, first + n_rows) on n_threads() threads.
/// @param[out] planes  where row `first` of each plane goes
void pack_planes(HostWeightView weights, std::int64_t first, std::int64_t n_rows,
                 std::byte* const (&planes)[kPlanes]);

}  // namespace lab
