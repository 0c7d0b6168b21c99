/// @file
/// CUDA C++ on a CPU: what a .cu file needs to be compiled by GCC or Clang and executed
/// with CUDA's semantics. Kernels include cuda/compat.hpp, which chooses between this and
/// nvcc. What a program may ask of the emulator itself is in simt/emulator.hpp.
#pragma once

#include "simt/arithmetic.hpp"
#include "simt/async_copy.hpp"
#include "simt/atomics.hpp"
#include "simt/collectives.hpp"
#include "simt/emulator.hpp"
#include "simt/half.hpp"
#include "simt/host_api.hpp"
#include "simt/language.hpp"
#include "simt/runtime.hpp"
#include "simt/tensor_core.hpp"
#include "simt/wmma.hpp"
