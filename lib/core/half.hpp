/// @file
/// 16-bit floating point: storage types and exact scalar conversions.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace lab {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa bits. Storage only.
struct Half {
  std::uint16_t bits;
};

/// bfloat16: the upper 16 bits of a float. Storage only.
struct BFloat16 {
  std::uint16_t bits;
};

/// So that code over any storage type may call it.
constexpr float to_float(float v) { return v; }

/// Exact; subnormals, infinities and NaN included.
constexpr float to_float(Half h) {
  const std::uint32_t sign = std::uint32_t(h.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (h.bits >> 10) & 31u, mantissa = h.bits & 0x3ffu;
  if (exponent == 0)  // zero or subnormal: mantissa * 2^-24
    return std::bit_cast<float>(sign |
                                std::bit_cast<std::uint32_t>(float(mantissa) * 0x1p-24f));
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

/// Exact.
constexpr float to_float(BFloat16 b) {
  return std::bit_cast<float>(std::uint32_t(b.bits) << 16);
}

/// Rounds to nearest, ties to even; overflows to infinity; NaN stays NaN.
constexpr Half to_half(float v) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(v), magnitude = u & 0x7fffffffu;
  const std::uint16_t sign = std::uint16_t((u >> 16) & 0x8000u);
  if (magnitude > 0x7f800000u) return {std::uint16_t(sign | 0x7e00u)};  // NaN
  if (magnitude >= 0x477ff000u)
    return {std::uint16_t(sign | 0x7c00u)};  // >= 65520: infinity
  if (magnitude <
      0x38800000u) {  // below 2^-14: a multiple of 2^-24, rounded by the addition
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return {std::uint16_t(sign | ((rounded - 0x38000000u) >> 13))};
}

/// Rounds to nearest, ties to even; NaN stays NaN.
constexpr BFloat16 to_bfloat16(float v) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(v);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {std::uint16_t((u >> 16) | 64u)};
  return {std::uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

/// @return `v` in the storage type T
template <class T>
constexpr T from_float(float v) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(v);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(v);
  else
    return static_cast<T>(v);
}

}  // namespace lab
