/// @file
/// Reading the codes and scales of the block formats: shared by dequantize and by packing.
#pragma once

#include <cstdint>
#include <cstring>

namespace lab::cpu::blocks {

/// What the sixteen codes of a 4-bit format stand for, before the scale.
struct NibbleCodes {
  std::int8_t value[16];
};
/// IQ4_NL: denser near zero, where most weights are.
inline constexpr NibbleCodes kIq4Codes = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}};

/// A little-endian value at any alignment.
template <class T>
T read(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// In the K formats, bits of four blocks of 32 share a byte: `plane` is the block's place in
// it.

inline void q2_k_codes(const std::uint8_t* b, int block, std::uint8_t* code) {
  const std::uint8_t* qs = b + 16 + 32 * (block / 4);
  const int plane = block % 4;
  for (int l = 0; l < 32; ++l) code[l] = (qs[l] >> (2 * plane)) & 3u;
}

/// Codes 0 to 7; 4 is the zero point.
inline void q3_k_codes(const std::uint8_t* b, int block, std::uint8_t* code) {
  const std::uint8_t* qs = b + 32 + 32 * (block / 4);
  const int plane = block % 4;
  for (int l = 0; l < 32; ++l)
    code[l] = std::uint8_t(((qs[l] >> (2 * plane)) & 3u) | ((b[l] >> block) & 1u) << 2);
}

/// The signed 6-bit scale of 16 weights, -32 to 31; k in [0, 16). As every constexpr
/// function, CUDA kernels can call it.
constexpr int q3_k_scale(const std::uint8_t* b, int k) {
  const std::uint8_t* s = b + 96;
  const unsigned low = k < 8 ? s[k] & 15u : s[k - 8] >> 4;
  const unsigned high = (s[8 + k % 4] >> (2 * (k / 4))) & 3u;
  return int(low | high << 4) - 32;
}

template <bool kFifth>  // Q5_K has a fifth bit
inline void q45_k_codes(const std::uint8_t* b, int block, std::uint8_t* code) {
  const std::uint8_t* qh = b + 16;
  const std::uint8_t* qs = (kFifth ? b + 48 : b + 16) + 32 * (block / 2);
  const int shift = 4 * (block % 2);
  for (int l = 0; l < 32; ++l) {
    unsigned c = (qs[l] >> shift) & 15u;
    if (kFifth) c |= ((qh[l] >> block) & 1u) << 4;
    code[l] = std::uint8_t(c);
  }
}

struct ScaleMin {
  std::uint8_t scale, min;
};
/// The 6-bit scale and minimum of a block; `s` is the field of 12 bytes.
constexpr ScaleMin q45_k_scale(const std::uint8_t* s, int block) {
  if (block < 4) return {std::uint8_t(s[block] & 63u), std::uint8_t(s[block + 4] & 63u)};
  const unsigned low = s[block + 4];
  return {std::uint8_t((low & 15u) | (s[block - 4] >> 6) << 4),
          std::uint8_t((low >> 4) | (s[block] >> 6) << 4)};
}

/// Codes 0 to 63; 32 is the zero point.
inline void q6_k_codes(const std::uint8_t* b, int block, std::uint8_t* code) {
  const int half = block / 4, plane = block % 4;
  const std::uint8_t* ql = b + 64 * half + 32 * (plane & 1);
  const std::uint8_t* qh = b + 128 + 32 * half;
  for (int l = 0; l < 32; ++l) {
    const unsigned low = plane < 2 ? ql[l] & 15u : ql[l] >> 4;
    code[l] = std::uint8_t(low | ((qh[l] >> (2 * plane)) & 3u) << 4);
  }
}

}  // namespace lab::cpu::blocks
