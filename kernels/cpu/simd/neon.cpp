#ifdef __aarch64__
#ifndef __ARM_FEATURE_DOTPROD
#define __ARM_FEATURE_DOTPROD 1  // before clang 16, or the header leaves dot products out
#endif
#include <arm_neon.h>

#include "includes.hpp"

#ifdef __clang__
LAB_TARGET_BEGIN("dotprod")
#else
LAB_TARGET_BEGIN("arch=armv8.2-a+dotprod")
#endif
namespace lab::cpu::neon {
#include "neon.hpp"
//
#include "kernels.inc"
}  // namespace lab::cpu::neon
LAB_TARGET_END

const lab::cpu::KernelTable lab::cpu::neon::kKernels = lab::cpu::neon::make_table("neon");
#endif
