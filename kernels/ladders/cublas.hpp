/// @file
/// NVIDIA's library on the problems of the gemm and gemv ladders: what the rungs are held
/// to.
#pragma once

#include "ladders/ladder.hpp"

namespace lab::ladders {

/// @return cuBLAS in f32 and in f16 with sums in f32, as rungs; none in a build without
/// cuBLAS
std::vector<Rung> cublas_peers();

}  // namespace lab::ladders
