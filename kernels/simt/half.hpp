/// @file
/// __half and __nv_bfloat16 with the functions of cuda_fp16.h and cuda_bf16.h that kernels
/// use. All conversions round to nearest even and agree with NVIDIA's on every float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/language.hpp"

namespace emulator {

/// @return float as binary16; overflow gives infinity, NaN gives 0x7fff
constexpr std::uint16_t float_to_half_bits(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f), sign = bits >> 16 & 0x8000u,
                      magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return std::uint16_t(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 rounds at the right bit
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return std::uint16_t(sign | (rounded - 0x38000000u) >> 13);
}
constexpr float half_bits_to_float(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) {
    const float v = float(magnitude) * 0x1p-24f;
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}
/// @return float as bfloat16; NaN gives 0x7fff
constexpr std::uint16_t float_to_bfloat16_bits(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return std::uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
constexpr float bfloat16_bits_to_float(std::uint16_t b) {
  return std::bit_cast<float>(std::uint32_t(b) << 16);
}

/// a * b + c as a float rounded to odd, from which any shorter format is rounded correctly.
/// The products of 16-bit formats are exact in double.
/// @par Source Boldo, Melquiond, "Emulation of FMA and correctly rounded sums: proved
/// algorithms using rounding to odd", 2008
inline float fma_round_to_odd(float a, float b, float c) {
  const double product = double(a) * double(b), addend = c, sum = product + addend;
  if (!std::isfinite(sum)) return float(sum);
  const double virtual_addend = sum - product;
  const double error = (product - (sum - virtual_addend)) + (addend - virtual_addend);
  const float f = float(sum);
  const double remainder = (sum - double(f)) + error;
  if (!std::isfinite(f) || remainder == 0.0 || (std::bit_cast<std::uint32_t>(f) & 1u))
    return f;
  return std::nextafter(f, remainder > 0.0 ? HUGE_VALF : -HUGE_VALF);
}

}  // namespace emulator

inline namespace emulated {  // not the symbols of nvcc's types, which the program may hold
                             // too

struct alignas(2) __half {
  std::uint16_t bits;
  __half() = default;
  constexpr __half(float f) : bits(::emulator::float_to_half_bits(f)) {}
  __forceinline__ constexpr operator float() const {
    return ::emulator::half_bits_to_float(bits);
  }
};
struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
  __nv_bfloat16() = default;
  constexpr __nv_bfloat16(float f) : bits(::emulator::float_to_bfloat16_bits(f)) {}
  __forceinline__ constexpr operator float() const {
    return ::emulator::bfloat16_bits_to_float(bits);
  }
};
struct alignas(4) __half2 {
  __half x, y;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

}  // namespace emulated
using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

// A float result of +, -, * or / rounds to the 16-bit result: 24 bits are at least twice 11
// plus 2 (Figueroa, "When is double rounding innocuous?", 1995).
namespace emulator {
// What fmax and fmin leave open: -0 is below +0, and the other operand of any NaN is the
// result. (PTX ISA, max and min of half)
inline float larger(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a == b ? (std::signbit(a) ? b : a) : (a > b ? a : b);
}
inline float smaller(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a == b ? (std::signbit(a) ? a : b) : (a < b ? a : b);
}
}  // namespace emulator

#define SIMT_HALF_FUNCTIONS(H, H2)                                                 \
  inline H operator+(H a, H b) { return float(a) + float(b); }                     \
  inline H operator-(H a, H b) { return float(a) - float(b); }                     \
  inline H operator*(H a, H b) { return float(a) * float(b); }                     \
  inline H operator/(H a, H b) { return float(a) / float(b); }                     \
  inline H operator-(H a) {                                                        \
    a.bits ^= 0x8000u;                                                             \
    return a;                                                                      \
  }                                                                                \
  __forceinline__ H& operator+=(H& a, H b) { return a = a + b; }                   \
  __forceinline__ H& operator-=(H& a, H b) { return a = a - b; }                   \
  __forceinline__ H& operator*=(H& a, H b) { return a = a * b; }                   \
  __forceinline__ H& operator/=(H& a, H b) { return a = a / b; }                   \
  inline bool operator<(H a, H b) { return float(a) < float(b); }                  \
  inline bool operator>(H a, H b) { return float(a) > float(b); }                  \
  inline bool operator<=(H a, H b) { return float(a) <= float(b); }                \
  inline bool operator>=(H a, H b) { return float(a) >= float(b); }                \
  inline bool operator==(H a, H b) { return float(a) == float(b); }                \
  inline bool operator!=(H a, H b) { return float(a) != float(b); }                \
  inline H __hadd(H a, H b) { return a + b; }                                      \
  inline H __hsub(H a, H b) { return a - b; }                                      \
  inline H __hmul(H a, H b) { return a * b; }                                      \
  inline H __hdiv(H a, H b) { return a / b; }                                      \
  inline H __hneg(H a) { return -a; }                                              \
  inline H __hfma(H a, H b, H c) { return ::emulator::fma_round_to_odd(a, b, c); } \
  inline H __habs(H a) {                                                           \
    a.bits &= 0x7fffu;                                                             \
    return a;                                                                      \
  }                                                                                \
  inline H __hmax(H a, H b) { return ::emulator::larger(a, b); }                   \
  inline H __hmin(H a, H b) { return ::emulator::smaller(a, b); }                  \
  inline bool __hlt(H a, H b) { return a < b; }                                    \
  inline bool __hle(H a, H b) { return a <= b; }                                   \
  inline bool __hgt(H a, H b) { return a > b; }                                    \
  inline bool __hge(H a, H b) { return a >= b; }                                   \
  inline bool __heq(H a, H b) { return a == b; }                                   \
  inline bool __hisnan(H a) { return std::isnan(float(a)); }                       \
  inline H hsqrt(H a) { return std::sqrt(float(a)); }                              \
  inline H hexp(H a) { return std::exp(float(a)); }                                \
  inline H hrcp(H a) { return 1.0f / float(a); }                                   \
  inline H2 operator+(H2 a, H2 b) { return {a.x + b.x, a.y + b.y}; }               \
  inline H2 operator-(H2 a, H2 b) { return {a.x - b.x, a.y - b.y}; }               \
  inline H2 operator*(H2 a, H2 b) { return {a.x * b.x, a.y * b.y}; }               \
  inline H2 __hadd2(H2 a, H2 b) { return a + b; }                                  \
  inline H2 __hsub2(H2 a, H2 b) { return a - b; }                                  \
  inline H2 __hmul2(H2 a, H2 b) { return a * b; }                                  \
  inline H2 __hneg2(H2 a) { return {-a.x, -a.y}; }                                 \
  inline H2 __habs2(H2 a) { return {__habs(a.x), __habs(a.y)}; }                   \
  inline H2 __hfma2(H2 a, H2 b, H2 c) {                                            \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                         \
  }                                                                                \
  inline H2 __hmax2(H2 a, H2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }   \
  inline H2 __hmin2(H2 a, H2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }   \
  inline float __low2float(H2 a) { return a.x; }                                   \
  inline float __high2float(H2 a) { return a.y; }
SIMT_HALF_FUNCTIONS(__half, __half2)
SIMT_HALF_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef SIMT_HALF_FUNCTIONS

inline float __half2float(__half h) { return h; }
inline __half __float2half(float f) { return f; }
inline __half __float2half_rn(float f) { return f; }
inline __half __int2half_rn(int i) { return float(i); }
inline __half __ushort_as_half(unsigned short bits) { return std::bit_cast<__half>(bits); }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline __half __short_as_half(short bits) { return std::bit_cast<__half>(bits); }
inline short __half_as_short(__half h) { return std::bit_cast<short>(h); }
inline float2 __half22float2(__half2 h) { return {float(h.x), float(h.y)}; }
inline __half2 __floats2half2_rn(float a, float b) { return {a, b}; }
inline __half2 __float2half2_rn(float f) { return {f, f}; }
inline __half2 __float22half2_rn(float2 f) { return {f.x, f.y}; }
inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half2 __half2half2(__half a) { return {a, a}; }
inline __half2 make_half2(__half a, __half b) { return {a, b}; }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }

inline float __bfloat162float(__nv_bfloat16 b) { return b; }
inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return f; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return std::bit_cast<__nv_bfloat16>(bits);
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
inline float2 __bfloat1622float2(__nv_bfloat162 b) { return {float(b.x), float(b.y)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {a, b}; }
inline __nv_bfloat162 __float2bfloat162_rn(float f) { return {f, f}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 f) { return {f.x, f.y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
  return {a, b};
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
