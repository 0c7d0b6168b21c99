/// @file
/// The rungs, each in a file of its own, and what their files share.
#pragma once

#include "lab/core/error.hpp"
#include "ladders/cpu/ladder.hpp"

namespace lab::cpu_ladder {

inline constexpr int kBlock = 32;  // weights that share a scale

/// Calls body.operator()<Format>() with the file format of `dtype`: ladders/cpu/blocks.hpp.
/// @throws Error unless it is Q4_0 or Q8_0
template <class Q4, class Q8, class Body>
void with_format(DType dtype, Body&& body) {
  LAB_CHECK(dtype == DType::q4_0 || dtype == DType::q8_0,
            "the CPU ladder has no rungs for {} weights; it takes Q4_0 and Q8_0",
            name(dtype));
  if (dtype == DType::q4_0) return body.template operator()<Q4>();
  body.template operator()<Q8>();
}

Rung plain();
Rung gemv_blocks();
Rung gemv_accumulators();
Rung gemv_packed();
Rung gemm_rows();
Rung gemm_accumulators();
Rung gemm_registers();
Rung gemm_panels();
Rung library_f32();
Rung library_int8();
Rung library_vnni();

}  // namespace lab::cpu_ladder
