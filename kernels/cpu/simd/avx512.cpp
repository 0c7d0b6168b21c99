#ifdef __x86_64__
#include <immintrin.h>

#include "includes.hpp"

LAB_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace lab::cpu::avx512 {
#include "avx512.hpp"

constexpr int kSignedZero = 0;  // dot4 takes signed codes
/// Each 32 bits of `sum` plus its four codes of w times the four of x. A pair of products
/// must fit in 16 bits: codes are at most 63, or |w| <= 128 with the sign of w moved to x,
/// where |x| <= 127.
template <bool kSigned>
LAB_INLINE Vi dot4(Vi sum, Vi w, Vi x) {
  if (kSigned) {
    x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    w = _mm512_abs_epi8(w);
  }
  const Vi pairs = _mm512_maddubs_epi16(w, x);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

#include "kernels.inc"
}  // namespace lab::cpu::avx512
LAB_TARGET_END

const lab::cpu::KernelTable lab::cpu::avx512::kKernels =
    lab::cpu::avx512::make_table("avx512");
#endif
