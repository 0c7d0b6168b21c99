/// @file
/// Arithmetic, bit and load intrinsics. The approximate functions of a GPU (__expf,
/// rsqrtf, ...) are computed more exactly here: compare with a tolerance.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/runtime.hpp"

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
inline float max(float a, float b) { return std::fmax(a, b); }
inline float min(float a, float b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline unsigned max(int a, unsigned b) { return std::max(unsigned(a), b); }
inline unsigned max(unsigned a, int b) { return std::max(a, unsigned(b)); }
inline unsigned min(int a, unsigned b) { return std::min(unsigned(a), b); }
inline unsigned min(unsigned a, int b) { return std::min(a, unsigned(b)); }

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) noexcept { return std::exp2(x * 1.4426950408889634f); }
inline float __exp10f(float x) noexcept { return std::exp2(x * 3.3219280948873623f); }
inline float __logf(float x) noexcept { return std::log(x); }
inline float __log2f(float x) noexcept { return std::log2(x); }
inline float __log10f(float x) noexcept { return std::log10(x); }
inline float __powf(float x, float y) noexcept { return std::exp2(y * std::log2(x)); }
inline float __sinf(float x) noexcept { return std::sin(x); }
inline float __cosf(float x) noexcept { return std::cos(x); }
inline void __sincosf(float x, float* s, float* c) noexcept {
  *s = std::sin(x);
  *c = std::cos(x);
}
inline void sincospif(float x, float* s, float* c) {
  *s = float(std::sin(x * 3.14159265358979323846));
  *c = float(std::cos(x * 3.14159265358979323846));
}
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return float(1.0 / std::sqrt(double(x))); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __saturatef(float x) { return x > 0.0f ? std::min(x, 1.0f) : 0.0f; }

namespace emulator {

/// A float as an integer the way the GPU converts: saturating, NaN to 0.
template <class Int>
Int saturating_cast(double rounded) {
  using Limits = std::numeric_limits<Int>;
  if (std::isnan(rounded)) return 0;
  if (rounded <= double(Limits::min())) return Limits::min();
  if (rounded >= double(Limits::max())) return Limits::max();
  return Int(rounded);
}

}  // namespace emulator

inline int __float2int_rn(float x) {
  return ::emulator::saturating_cast<int>(std::nearbyint(x));
}
inline int __float2int_rz(float x) {
  return ::emulator::saturating_cast<int>(std::trunc(x));
}
inline int __float2int_ru(float x) {
  return ::emulator::saturating_cast<int>(std::ceil(x));
}
inline int __float2int_rd(float x) {
  return ::emulator::saturating_cast<int>(std::floor(x));
}
inline unsigned __float2uint_rn(float x) {
  return ::emulator::saturating_cast<unsigned>(std::nearbyint(x));
}
inline unsigned __float2uint_rz(float x) {
  return ::emulator::saturating_cast<unsigned>(std::trunc(x));
}
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(unsigned(x)); }
inline int __clzll(long long x) { return std::countl_zero((unsigned long long)x); }
inline int __ffs(int x) { return x ? std::countr_zero(unsigned(x)) + 1 : 0; }
inline int __ffsll(long long x) {
  return x ? std::countr_zero((unsigned long long)x) + 1 : 0;
}
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
  return r;
}
/// Four bytes of {b, a}, chosen by the four nibbles of `selector`; bit 3 repeats the sign.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t(b) << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> 4 * i;
    unsigned byte = unsigned(bytes >> 8 * (nibble & 7u)) & 0xffu;
    if (nibble & 8u) byte = byte & 0x80u ? 0xffu : 0u;
    r |= byte << 8 * i;
  }
  return r;
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return unsigned((std::uint64_t(hi) << 32 | lo) << (shift & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return unsigned((std::uint64_t(hi) << 32 | lo) >> (shift & 31u));
}
inline int __mulhi(int a, int b) { return int((std::int64_t(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((std::uint64_t(a) * b) >> 32);
}
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }

/// c + the dot product of four bytes; the sum wraps around as on the GPU.
inline int __dp4a(int a, int b, int c) {
  unsigned sum = unsigned(c);
  for (int i = 0; i < 4; ++i)
    sum += unsigned(int(std::int8_t(a >> 8 * i)) * int(std::int8_t(b >> 8 * i)));
  return int(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xffu) * (b >> 8 * i & 0xffu);
  return c;
}

// Loads and stores with cache hints, which mean nothing here. Forced inline: an access
// belongs to the line of the kernel that makes it.
template <class T>
__forceinline__ T __ldg(const T* p) {
  return *p;
}
template <class T>
__forceinline__ T __ldca(const T* p) {
  return *p;
}
template <class T>
__forceinline__ T __ldcg(const T* p) {
  return *p;
}
template <class T>
__forceinline__ T __ldcs(const T* p) {
  return *p;
}
template <class T>
__forceinline__ void __stcg(T* p, T v) {
  *p = v;
}
template <class T>
__forceinline__ void __stcs(T* p, T v) {
  *p = v;
}
