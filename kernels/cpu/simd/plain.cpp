#include "includes.hpp"

// Unrolling is for vectors of their own: here it only multiplies code and compile time.
#undef LAB_UNROLL
#define LAB_UNROLL(n) LAB_PRAGMA(GCC unroll 1)

namespace lab::cpu::plain {
#include "plain.hpp"
//
#include "kernels.inc"

const KernelTable kKernels = make_table("plain");
}  // namespace lab::cpu::plain
