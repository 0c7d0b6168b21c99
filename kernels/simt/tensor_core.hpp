/// @file
/// mma.sync and ldmatrix with the register layouts that the PTX ISA documents. Products are
/// exact and are added in f32 in the order of k; the order and the truncation of a GPU are
/// not documented, so compare with a tolerance. Integers are exact.
/// @par Source PTX ISA, "Matrix Multiply-Accumulate Instructions", "ldmatrix"
#pragma once

#include "simt/runtime.hpp"

namespace emulator {

// D (16, 8) = A (16, k) B (k, 8) + C. Each lane holds 4 elements of C and D, and of A and B
// as many 32-bit registers as the arrays have elements.
void mma_m16n8k8_f16(float (&d)[4], const std::uint32_t (&a)[2],
                     const std::uint32_t (&b)[1], const float (&c)[4], SIMT_LOC);
void mma_m16n8k8_bf16(float (&d)[4], const std::uint32_t (&a)[2],
                      const std::uint32_t (&b)[1], const float (&c)[4], SIMT_LOC);
void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4],
                      const std::uint32_t (&b)[2], const float (&c)[4], SIMT_LOC);
void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                       const std::uint32_t (&b)[2], const float (&c)[4], SIMT_LOC);
void mma_m16n8k16_s8(int (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1],
                     const int (&c)[4], SIMT_LOC);
void mma_m16n8k32_s8(int (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     const int (&c)[4], SIMT_LOC);

/// Loads `count` 8 x 8 matrices of 16-bit elements: lane 8 i + r gives the address of row r
/// of matrix i, and lane l receives elements 2 (l % 4) and the next of row l / 4.
/// @param count  1, 2 or 4; the addresses of lanes from 8 * count on are not used
void ldmatrix(std::uint32_t* registers, int count, bool transposed, const void* row,
              Location loc);
template <bool Transposed>
void ldmatrix_x1(std::uint32_t (&r)[1], const void* row, SIMT_LOC) {
  ldmatrix(r, 1, Transposed, row, loc);
}
template <bool Transposed>
void ldmatrix_x2(std::uint32_t (&r)[2], const void* row, SIMT_LOC) {
  ldmatrix(r, 2, Transposed, row, loc);
}
template <bool Transposed>
void ldmatrix_x4(std::uint32_t (&r)[4], const void* row, SIMT_LOC) {
  ldmatrix(r, 4, Transposed, row, loc);
}

}  // namespace emulator
