// The vocabulary for Armv8.2 with 8-bit dot products: Vf is 16 floats, Vi 16 times 32 bits,
// in four registers. Included inside a namespace and a target region.

struct Vf {
  float32x4_t v[4];
};
struct Vi {
  uint32x4_t v[4];
};
constexpr int kBandTiles = 1;
constexpr int kTileTokens = 4;  // 4 running dots take 16 of 32 registers
constexpr int kSignedZero = 0;  // dot4 takes signed codes
constexpr int kScoreRows = 4;   // rows x vectors of attention scores at a time
constexpr int kScoreVectors = 1;
constexpr int kMixRows = 2;  // rows x vectors of attention output at a time
constexpr int kMixVectors = 2;
constexpr int kPeakChains = 4;  // of four registers each

/// f(0), f(1), f(2), f(3) as the four registers of a V.
template <class V, class F>
LAB_INLINE V quarters(F&& f) {
  return {{f(0), f(1), f(2), f(3)}};
}

LAB_INLINE Vf set(float v) {
  const float32x4_t all = vdupq_n_f32(v);
  return {{all, all, all, all}};
}
LAB_INLINE Vf zero() { return set(0); }
LAB_INLINE Vf load(const float* p) {
  return quarters<Vf>([&](int i) { return vld1q_f32(p + 4 * i); });
}
LAB_INLINE uint16x4_t load_16(const void* p, int quarter) {
  return vld1_u16(static_cast<const std::uint16_t*>(p) + 4 * quarter);
}
LAB_INLINE Vf load(const Half* p) {
  return quarters<Vf>(
      [&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(load_16(p, i))); });
}
LAB_INLINE Vf load(const BFloat16* p) {
  return quarters<Vf>(
      [&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(load_16(p, i), 16)); });
}
LAB_INLINE void store(float* p, Vf x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.v[i]);
}
LAB_INLINE void store_16(void* p, int quarter, uint16x4_t v) {
  vst1_u16(static_cast<std::uint16_t*>(p) + 4 * quarter, v);
}
LAB_INLINE void store(Half* p, Vf x) {
  for (int i = 0; i < 4; ++i) store_16(p, i, vreinterpret_u16_f16(vcvt_f16_f32(x.v[i])));
}
LAB_INLINE void store(BFloat16* p, Vf x) {
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t u = vreinterpretq_u32_f32(x.v[i]), upper = u >> 16;
    const uint32x4_t rounded = (u + 0x7fff + (upper & 1)) >> 16, quiet = upper | 64;
    store_16(p, i, vmovn_u32(vbslq_u32(vceqq_f32(x.v[i], x.v[i]), rounded, quiet)));
  }
}
/// Bit i is set where lane i is: lanes are all ones or zero.
LAB_INLINE unsigned lane_bits(Vi x) {
  const uint16x8_t low = vcombine_u16(vmovn_u32(x.v[0]), vmovn_u32(x.v[1]));
  const uint16x8_t high = vcombine_u16(vmovn_u32(x.v[2]), vmovn_u32(x.v[3]));
  const uint8x8_t bit = vcreate_u8(0x8040201008040201u);
  return unsigned(vaddv_u8(vand_u8(vmovn_u16(low), bit))) |
         unsigned(vaddv_u8(vand_u8(vmovn_u16(high), bit))) << 8;
}
LAB_INLINE unsigned nan_lanes(Vf x) {
  return lane_bits(quarters<Vi>([&](int i) { return ~vceqq_f32(x.v[i], x.v[i]); }));
}
LAB_INLINE unsigned equal_lanes(Vf x, Vf y) {
  return lane_bits(quarters<Vi>([&](int i) { return vceqq_f32(x.v[i], y.v[i]); }));
}

LAB_INLINE Vf add(Vf x, Vf y) {
  return quarters<Vf>([&](int i) { return vaddq_f32(x.v[i], y.v[i]); });
}
LAB_INLINE Vf sub(Vf x, Vf y) {
  return quarters<Vf>([&](int i) { return vsubq_f32(x.v[i], y.v[i]); });
}
LAB_INLINE Vf mul(Vf x, Vf y) {
  return quarters<Vf>([&](int i) { return vmulq_f32(x.v[i], y.v[i]); });
}
LAB_INLINE Vf div(Vf x, Vf y) {
  return quarters<Vf>([&](int i) { return vdivq_f32(x.v[i], y.v[i]); });
}
LAB_INLINE Vf fma(Vf x, Vf y, Vf z) {
  return quarters<Vf>([&](int i) { return vfmaq_f32(z.v[i], x.v[i], y.v[i]); });
}
// The second operand if one is NaN, which vmaxq_f32 would return instead.
LAB_INLINE Vf max(Vf x, Vf y) {
  return quarters<Vf>(
      [&](int i) { return vbslq_f32(vcgtq_f32(x.v[i], y.v[i]), x.v[i], y.v[i]); });
}
LAB_INLINE Vf min(Vf x, Vf y) {
  return quarters<Vf>(
      [&](int i) { return vbslq_f32(vcltq_f32(x.v[i], y.v[i]), x.v[i], y.v[i]); });
}
LAB_INLINE Vf round(Vf x) {
  return quarters<Vf>([&](int i) { return vrndnq_f32(x.v[i]); });
}
LAB_INLINE float32x4_t scale2(float32x4_t v, float32x4_t n) {
  // In two steps: 2^n alone may be subnormal.
  const int32x4_t whole = vcvtnq_s32_f32(n), one = whole >> 1, two = whole - one;
  const auto power2 = [](int32x4_t e) { return vreinterpretq_f32_s32((e + 127) << 23); };
  return vmulq_f32(vmulq_f32(v, power2(one)), power2(two));
}
LAB_INLINE Vf scale2(Vf x, Vf n) {
  return quarters<Vf>([&](int i) { return scale2(x.v[i], n.v[i]); });
}
LAB_INLINE float reduce_add(Vf x) {
  const float32x4_t a = vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3]));
  const float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));
  return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}
LAB_INLINE float reduce_max(Vf x) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.v[0], x.v[1]), vmaxq_f32(x.v[2], x.v[3])));
}

/// a and b hold 16 pairs in a row: their first and their second elements.
LAB_INLINE void split_pairs(Vf a, Vf b, Vf& first, Vf& second) {
  for (int i = 0; i < 4; ++i) {
    const float32x4_t low = i < 2 ? a.v[2 * i] : b.v[2 * i - 4];
    const float32x4_t high = i < 2 ? a.v[2 * i + 1] : b.v[2 * i - 3];
    first.v[i] = vuzp1q_f32(low, high), second.v[i] = vuzp2q_f32(low, high);
  }
}
LAB_INLINE void join_pairs(Vf first, Vf second, Vf& a, Vf& b) {
  for (int i = 0; i < 4; ++i) {
    Vf& to = i < 2 ? a : b;
    to.v[2 * i % 4] = vzip1q_f32(first.v[i], second.v[i]);
    to.v[2 * i % 4 + 1] = vzip2q_f32(first.v[i], second.v[i]);
  }
}
LAB_INLINE float32x4_t join_64(float64x2_t v) { return vreinterpretq_f32_f64(v); }
/// Four rows of four.
LAB_INLINE void transpose4(const float32x4_t (&v)[4], float32x4_t (&out)[4]) {
  const auto pair = [](float32x4_t x) { return vreinterpretq_f64_f32(x); };
  for (int i = 0; i < 2; ++i) {
    const auto trn = [i](float32x4_t x, float32x4_t y) {
      return i == 0 ? vtrn1q_f32(x, y) : vtrn2q_f32(x, y);
    };
    const float64x2_t a = pair(trn(v[0], v[1])), b = pair(trn(v[2], v[3]));
    out[i] = join_64(vtrn1q_f64(a, b)), out[i + 2] = join_64(vtrn2q_f64(a, b));
  }
}
LAB_INLINE void transpose(Vf (&v)[16]) {  // the 4 x 4 blocks, which change places
  Vf out[16];
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column) {
      float32x4_t from[4], to[4];
      for (int i = 0; i < 4; ++i) from[i] = v[4 * row + i].v[column];
      transpose4(from, to);
      for (int i = 0; i < 4; ++i) out[4 * column + i].v[row] = to[i];
    }
  for (int i = 0; i < 16; ++i) v[i] = out[i];
}

LAB_INLINE Vi load_i(const void* p) {
  return quarters<Vi>(
      [&](int i) { return vld1q_u32(static_cast<const std::uint32_t*>(p) + 4 * i); });
}
LAB_INLINE Vi set_i(std::uint32_t v) {
  const uint32x4_t all = vdupq_n_u32(v);
  return {{all, all, all, all}};
}
LAB_INLINE void store_i(void* p, Vi x) {
  for (int i = 0; i < 4; ++i) vst1q_u32(static_cast<std::uint32_t*>(p) + 4 * i, x.v[i]);
}
LAB_INLINE Vi bit_and(Vi x, Vi y) {
  return quarters<Vi>([&](int i) { return x.v[i] & y.v[i]; });
}
LAB_INLINE Vi bit_xor(Vi x, Vi y) {
  return quarters<Vi>([&](int i) { return x.v[i] ^ y.v[i]; });
}
LAB_INLINE Vi bit_or(Vi x, Vi y) {
  return quarters<Vi>([&](int i) { return x.v[i] | y.v[i]; });
}
LAB_INLINE Vi shift_left(Vi x, int n) {
  return quarters<Vi>([&](int i) { return x.v[i] << n; });
}
LAB_INLINE Vi shift_right(Vi x, int n) {
  return quarters<Vi>([&](int i) { return x.v[i] >> n; });
}
LAB_INLINE int8x16_t bytes(uint32x4_t v) { return vreinterpretq_s8_u32(v); }
LAB_INLINE uint32x4_t words(int8x16_t v) { return vreinterpretq_u32_s8(v); }
LAB_INLINE Vi sub_bytes(Vi x, Vi y) {
  return quarters<Vi>([&](int i) { return words(bytes(x.v[i]) - bytes(y.v[i])); });
}
LAB_INLINE Vf as_float(Vi x) {
  return quarters<Vf>([&](int i) { return vreinterpretq_f32_u32(x.v[i]); });
}
LAB_INLINE Vf to_float(Vi x) {
  return quarters<Vf>([&](int i) { return vcvtq_f32_s32(vreinterpretq_s32_u32(x.v[i])); });
}
LAB_INLINE Vf load_bytes(const void* p) {  // 16 signed bytes
  const int8x16_t v = vld1q_s8(static_cast<const std::int8_t*>(p));
  const int16x8_t half[] = {vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v)};
  return quarters<Vf>([&](int i) {
    return vcvtq_f32_s32(i % 2 == 0 ? vmovl_s16(vget_low_s16(half[i / 2]))
                                    : vmovl_high_s16(half[i / 2]));
  });
}

/// Signed byte i of each 32 bits, times 2^24: moved to the top, it needs no sign extension.
LAB_INLINE Vf byte_column(Vi x, int i) {
  if (i == 0) return to_float(shift_left(x, 24));
  if (i == 3) return to_float(bit_and(x, set_i(0xff000000u)));
  const uint32x4_t lanes = {0, 4u << 24, 8u << 24, 12u << 24};
  const uint8x16_t from = vreinterpretq_u8_u32(lanes + (0x00ffffffu | unsigned(i) << 24));
  return to_float(
      quarters<Vi>([&](int q) { return words(vqtbl1q_s8(bytes(x.v[q]), from)); }));
}

/// The value of each byte, a code below 16.
LAB_INLINE Vi look_up(int8x16_t values, Vi codes) {
  return quarters<Vi>(
      [&](int i) { return words(vqtbl1q_s8(values, vreinterpretq_u8_u32(codes.v[i]))); });
}
LAB_INLINE Vi look_up(const blocks::NibbleCodes& c, Vi codes) {
  return look_up(vld1q_s8(c.value), codes);
}
/// What the sixteen codes of a nibble stand for.
using Codes = int8x16_t;
LAB_INLINE Codes make_codes(const blocks::NibbleCodes& c) { return vld1q_s8(c.value); }
/// Low (half 0) or high nibbles of the four bytes, times 2^24.
LAB_INLINE void nibble_columns(Vi x, int half, Codes codes, Vf (&out)[4]) {
  const Vi code = bit_and(shift_right(x, 4 * half), set_i(0x0f0f0f0fu));
  const Vi values = look_up(codes, code);
  for (int i = 0; i < 4; ++i) out[i] = byte_column(values, i);
}
/// Whole numbers from -127 to 127, as bytes.
LAB_INLINE void store_bytes(std::int8_t* p, Vf x) {
  const auto narrow = [&](int i) { return vmovn_s32(vcvtnq_s32_f32(x.v[i])); };
  const int16x8_t low = vcombine_s16(narrow(0), narrow(1));
  const int16x8_t high = vcombine_s16(narrow(2), narrow(3));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
/// Each 32 bits of `sum` plus its four signed codes of w times the four of x.
template <bool>
LAB_INLINE Vi dot4(Vi sum, Vi w, Vi x) {
  return quarters<Vi>([&](int i) {
    const int32x4_t s = vreinterpretq_s32_u32(sum.v[i]);
    return vreinterpretq_u32_s32(vdotq_s32(s, bytes(w.v[i]), bytes(x.v[i])));
  });
}
/// (dot - kMagic) * scale, for the bits of a float; `minus` is -kMagic * scale.
LAB_INLINE Vf scale_dot(Vi dot, Vf scale, Vf minus) {
  return fma(as_float(dot), scale, minus);
}
