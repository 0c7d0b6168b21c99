#ifdef __x86_64__
#include <immintrin.h>

#include "includes.hpp"

LAB_TARGET_BEGIN("avx2,fma,f16c")
namespace lab::cpu::avx2 {
#include "avx2.hpp"
//
#include "kernels.inc"
}  // namespace lab::cpu::avx2
LAB_TARGET_END

const lab::cpu::KernelTable lab::cpu::avx2::kKernels = lab::cpu::avx2::make_table("avx2");
#endif
