#ifdef __x86_64__
#include <immintrin.h>

#include "includes.hpp"

LAB_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace lab::cpu::avx512 {
#include "avx512.hpp"
//
#include "kernels.inc"
}  // namespace lab::cpu::avx512
LAB_TARGET_END

const lab::cpu::KernelTable lab::cpu::avx512::kKernels =
    lab::cpu::avx512::make_table("avx512");
#endif
