#include "lab/kernels/dequantize.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "blocks.hpp"
#include "lab/core/half.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kernels/check.hpp"

// A block's bytes, after GGUF v3. "h" is an f16, bytes unless said otherwise:
//   Q4_0    h d | qs[16]                             y = (code - 8) * d
//   Q4_1    h d | h m | qs[16]                       y = code * d + m
//   Q5_0    h d | u32 qh | qs[16]                    y = (code - 16) * d
//   Q5_1    h d | h m | u32 qh | qs[16]              y = code * d + m
//   Q8_0    h d | i8 qs[32]                          y = code * d
//   IQ4_NL  h d | qs[16]                             y = d * kIq4Codes[code]
//     In all of these byte j of qs holds weight j (low nibble) and j + 16 (high nibble),
//     and bit j of qh is the fifth bit of weight j.
//   Q2_K    scales[16] | qs[64] | h d | h dmin       y = (d * scale) * code - dmin * min
//   Q3_K    hmask[32] | qs[64] | scales[12] | h d    y = d * (scale - 32) * code
//   Q4_K    h d | h dmin | scales[12] | qs[128]      y = (d * scale) * code - dmin * min
//   Q5_K    h d | h dmin | scales[12] | qh[32] | qs[128]      the same
//   Q6_K    ql[128] | qh[64] | i8 scales[16] | h d   y = d * scale * (code - 32)
namespace lab::cpu {
namespace {

using Byte = std::uint8_t;

float half_at(const Byte* p) { return to_float(Half{blocks::read<std::uint16_t>(p)}); }

/// The five formats of 32 weights that have nibbles. `fifth` is qh, or 0.
template <class Value>
void nibbles(float* y, const Byte* qs, std::uint32_t fifth, Value value) {
  for (int j = 0; j < 16; ++j) {
    y[j] = value(int((qs[j] & 15u) | ((fifth >> j) & 1u) << 4));
    y[j + 16] = value(int((qs[j] >> 4) | ((fifth >> (j + 16)) & 1u) << 4));
  }
}

void q4_0(float* y, const Byte* b) {
  const float d = half_at(b);
  nibbles(y, b + 2, 0, [&](int code) { return float(code - 8) * d; });
}
void q4_1(float* y, const Byte* b) {
  const float d = half_at(b), m = half_at(b + 2);
  nibbles(y, b + 4, 0, [&](int code) { return float(code) * d + m; });
}
void q5_0(float* y, const Byte* b) {
  const float d = half_at(b);
  nibbles(y, b + 6, blocks::read<std::uint32_t>(b + 2),
          [&](int code) { return float(code - 16) * d; });
}
void q5_1(float* y, const Byte* b) {
  const float d = half_at(b), m = half_at(b + 2);
  nibbles(y, b + 8, blocks::read<std::uint32_t>(b + 4),
          [&](int code) { return float(code) * d + m; });
}
void q8_0(float* y, const Byte* b) {
  const float d = half_at(b);
  for (int j = 0; j < 32; ++j) y[j] = float(std::int8_t(b[2 + j])) * d;
}
void iq4_nl(float* y, const Byte* b) {
  const float d = half_at(b);
  nibbles(y, b + 2, 0, [&](int code) { return d * float(blocks::kIq4Codes.value[code]); });
}

/// The K formats: 8 blocks of 32 codes, then scales (and minima) of each or of each half.
void q2_k(float* y, const Byte* b) {
  const float d = half_at(b + 80), dmin = half_at(b + 82);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    blocks::q2_k_codes(b, block, code);
    for (int l = 0; l < 32; ++l) {
      const unsigned s = b[2 * block + l / 16];
      y[32 * block + l] = d * float(s & 15u) * float(code[l]) - dmin * float(s >> 4);
    }
  }
}
void q3_k(float* y, const Byte* b) {
  const float d = half_at(b + 108);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    blocks::q3_k_codes(b, block, code);
    for (int l = 0; l < 32; ++l)
      y[32 * block + l] =
          d * float(blocks::q3_k_scale(b, 2 * block + l / 16)) * float(code[l] - 4);
  }
}
template <bool kFifth>
void q45_k(float* y, const Byte* b) {
  const float d = half_at(b), dmin = half_at(b + 2);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    blocks::q45_k_codes<kFifth>(b, block, code);
    const auto [scale, min] = blocks::q45_k_scale(b + 4, block);
    for (int l = 0; l < 32; ++l)
      y[32 * block + l] = d * float(scale) * float(code[l]) - dmin * float(min);
  }
}
void q6_k(float* y, const Byte* b) {
  const float d = half_at(b + 208);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    blocks::q6_k_codes(b, block, code);
    for (int l = 0; l < 32; ++l)
      y[32 * block + l] =
          d * float(std::int8_t(b[192 + 2 * block + l / 16])) * float(code[l] - 32);
  }
}

void f32(float* y, const Byte* b) { std::memcpy(y, b, sizeof(float)); }
void f16(float* y, const Byte* b) { *y = half_at(b); }
void bf16(float* y, const Byte* b) {
  *y = to_float(BFloat16{blocks::read<std::uint16_t>(b)});
}

using Decode = void (*)(float* y, const Byte* block);
constexpr Decode kDecode[kDTypeCount] = {f32,          f16,         bf16, q4_0,  q4_1,
                                         q5_0,         q5_1,        q8_0, q2_k,  q3_k,
                                         q45_k<false>, q45_k<true>, q6_k, iq4_nl};

}  // namespace

void reference::dequantize(HostView<float, 1> out, DType dtype, const std::byte* data) {
  check_dequantize(out.shape, dtype);
  const DTypeInfo& info = dtype_info(dtype);
  const Byte* block = reinterpret_cast<const Byte*>(data);
  for (std::int64_t i = 0; i < out.shape[0];
       i += info.block_size, block += info.block_bytes)
    kDecode[static_cast<int>(dtype)](out.data + i, block);
}

void dequantize(HostView<float, 1> out, DType dtype, const std::byte* data) {
  check_dequantize(out.shape, dtype);
  constexpr std::int64_t kPiece = 4096;  // a multiple of every block size
  parallel_for(
      (out.shape[0] + kPiece - 1) / kPiece, 16, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t first = begin * kPiece,
                           last = std::min(end * kPiece, out.shape[0]);
        reference::dequantize(out.rows(first, last), dtype, data + row_bytes(dtype, first));
      });
}

}  // namespace lab::cpu
