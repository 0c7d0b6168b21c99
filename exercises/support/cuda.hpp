/// @file
/// What an exercise.cu includes: CUDA itself, from nvcc or from the emulator, and launch().
#ifndef LAB_EXERCISES_CUDA_HPP
#define LAB_EXERCISES_CUDA_HPP

#include <stdexcept>

#include "cuda/compat.hpp"

namespace exercise {

/// ceil_div(a, b): the least n with n * b >= a.
using lab::LAB_GPU::ceil_div;
/// launch(kernel, {grid, block}, args...) is kernel<<<grid, block>>>(args...), and throws
/// if the launch or, emulated, the kernel fails.
using lab::LAB_GPU::launch;

/// Device code that a student has still to write: ends the kernel with these words.
template <class T>
__device__ T not_written(const char* what) {
#ifdef __CUDACC__
  printf("%s\n", what);
  __trap();
  return T();
#else
  ::emulator::device_fail("not yet", what);
#endif
}

}  // namespace exercise

#endif
