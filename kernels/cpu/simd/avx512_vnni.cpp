#ifdef __x86_64__
#include <immintrin.h>

#include "includes.hpp"

LAB_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")
namespace lab::cpu::avx512_vnni {
#include "avx512.hpp"

constexpr int kSignedZero = 128;  // dot4 takes unsigned codes
/// Each 32 bits of `sum` plus its four unsigned codes of w times the four signed of x.
template <bool>
LAB_INLINE Vi dot4(Vi sum, Vi w, Vi x) {
  return _mm512_dpbusd_epi32(sum, w, x);
}

#include "math.inc"
//
#include "formats.inc"
//
#include "linear_int8.inc"

template <int... kDType>
KernelTable make_table(std::integer_sequence<int, kDType...>) {
  KernelTable table = avx512::kKernels;
  table.name = "avx512_vnni";
  ((table.linear[1][kDType] = int8_kernels<Format<kDType>>(table.linear[0][kDType])), ...);
  return table;
}
}  // namespace lab::cpu::avx512_vnni
LAB_TARGET_END

const lab::cpu::KernelTable& lab::cpu::avx512_vnni::kernels() {
  static const KernelTable table =
      make_table(std::make_integer_sequence<int, kDTypeCount>{});
  return table;
}
#endif
