// The vocabulary for AVX2, FMA and F16C: Vf is 16 floats, Vi 16 times 32 bits, in two
// halves. Included inside a namespace and a target region.

struct Vf {
  __m256 a, b;
};
struct Vi {
  __m256i a, b;
};
constexpr int kBandTiles = 1;
constexpr int kTileTokens = 4;  // 4 running dots take 8 of 16 registers
constexpr int kSignedZero = 0;  // dot4 takes signed codes
constexpr int kScoreRows = 4;   // rows x vectors of attention scores at a time
constexpr int kScoreVectors = 1;
constexpr int kMixRows = 2;  // rows x vectors of attention output at a time
constexpr int kMixVectors = 2;
constexpr int kPeakChains = 5;  // of two registers each

LAB_INLINE Vf zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
LAB_INLINE Vf set(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
LAB_INLINE Vf load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
LAB_INLINE Vf load(const Half* p) {
  const __m128i* v = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(v)), _mm256_cvtph_ps(_mm_loadu_si128(v + 1))};
}
LAB_INLINE __m256 widen_bf16(const __m128i* p) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}
LAB_INLINE Vf load(const BFloat16* p) {
  const __m128i* v = reinterpret_cast<const __m128i*>(p);
  return {widen_bf16(v), widen_bf16(v + 1)};
}
LAB_INLINE void store(float* p, Vf v) {
  _mm256_storeu_ps(p, v.a), _mm256_storeu_ps(p + 8, v.b);
}
LAB_INLINE void store(Half* p, Vf v) {
  __m128i* to = reinterpret_cast<__m128i*>(p);
  _mm_storeu_si128(to, _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(to + 1, _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT));
}
LAB_INLINE __m256i round_bf16(__m256 v) {  // in the lower half of each 32 bits
  const __m256i u = _mm256_castps_si256(v), upper = _mm256_srli_epi32(u, 16);
  const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff),
                                        _mm256_and_si256(upper, _mm256_set1_epi32(1)));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(u, half), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(64));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet, nan);
}
LAB_INLINE void store(BFloat16* p, Vf v) {
  const __m256i packed = _mm256_packus_epi32(round_bf16(v.a), round_bf16(v.b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_permute4x64_epi64(packed, 0xd8));
}
LAB_INLINE unsigned nan_lanes(Vf v) {
  return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(v.a, v.a, _CMP_UNORD_Q))) |
         unsigned(_mm256_movemask_ps(_mm256_cmp_ps(v.b, v.b, _CMP_UNORD_Q))) << 8;
}
LAB_INLINE unsigned equal_lanes(Vf x, Vf y) {
  return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ))) |
         unsigned(_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ))) << 8;
}

LAB_INLINE Vf add(Vf x, Vf y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
LAB_INLINE Vf sub(Vf x, Vf y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
LAB_INLINE Vf mul(Vf x, Vf y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
LAB_INLINE Vf div(Vf x, Vf y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
LAB_INLINE Vf fma(Vf x, Vf y, Vf z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
// The second operand if one is NaN.
LAB_INLINE Vf max(Vf x, Vf y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
LAB_INLINE Vf min(Vf x, Vf y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
LAB_INLINE Vf round(Vf v) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(v.a, kNearest), _mm256_round_ps(v.b, kNearest)};
}
LAB_INLINE __m256 scale2(__m256 v, __m256 n) {  // in two steps: 2^n alone may be subnormal
  const __m256i whole = _mm256_cvtps_epi32(n), one = _mm256_srai_epi32(whole, 1);
  const __m256i two = _mm256_sub_epi32(whole, one), bias = _mm256_set1_epi32(127);
  const __m256i p = _mm256_slli_epi32(_mm256_add_epi32(one, bias), 23);
  const __m256i q = _mm256_slli_epi32(_mm256_add_epi32(two, bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(v, _mm256_castsi256_ps(p)), _mm256_castsi256_ps(q));
}
LAB_INLINE Vf scale2(Vf v, Vf n) { return {scale2(v.a, n.a), scale2(v.b, n.b)}; }
LAB_INLINE float reduce_add(Vf v) {
  const __m256 a = _mm256_add_ps(v.a, v.b);
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
LAB_INLINE float reduce_max(Vf v) {
  const __m256 a = _mm256_max_ps(v.a, v.b);
  const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

/// a and b hold 8 pairs in a row: their first and their second elements.
LAB_INLINE __m256 even_lanes(__m256 a, __m256 b, bool odd) {
  const __m256 v = odd ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}
LAB_INLINE void split_pairs(Vf x, Vf y, Vf& first, Vf& second) {
  first = {even_lanes(x.a, x.b, false), even_lanes(y.a, y.b, false)};
  second = {even_lanes(x.a, x.b, true), even_lanes(y.a, y.b, true)};
}
LAB_INLINE Vf interleave(__m256 first, __m256 second) {
  const __m256 low = _mm256_unpacklo_ps(first, second),
               high = _mm256_unpackhi_ps(first, second);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
LAB_INLINE void join_pairs(Vf first, Vf second, Vf& x, Vf& y) {
  x = interleave(first.a, second.a);
  y = interleave(first.b, second.b);
}
LAB_INLINE void transpose8(__m256 (&v)[8]) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}
LAB_INLINE void transpose(Vf (&v)[16]) {  // the 8 x 8 quarters, then they change places
  for (int half = 0; half < 16; half += 8) {
    __m256 a[8], b[8];
    for (int i = 0; i < 8; ++i) a[i] = v[half + i].a, b[i] = v[half + i].b;
    transpose8(a);
    transpose8(b);
    for (int i = 0; i < 8; ++i) v[half + i] = {a[i], b[i]};
  }
  for (int i = 0; i < 8; ++i) {
    const Vf upper = v[i], lower = v[i + 8];
    v[i] = {upper.a, lower.a};
    v[i + 8] = {upper.b, lower.b};
  }
}

LAB_INLINE Vi load_i(const void* p) {
  const __m256i* v = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
}
LAB_INLINE Vi set_i(std::uint32_t v) {
  return {_mm256_set1_epi32(int(v)), _mm256_set1_epi32(int(v))};
}
LAB_INLINE Vi bit_and(Vi x, Vi y) {
  return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
LAB_INLINE void store_i(void* p, Vi v) {
  __m256i* to = static_cast<__m256i*>(p);
  _mm256_storeu_si256(to, v.a), _mm256_storeu_si256(to + 1, v.b);
}
LAB_INLINE Vi bit_xor(Vi x, Vi y) {
  return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
LAB_INLINE Vi bit_or(Vi x, Vi y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
LAB_INLINE Vi shift_left(Vi v, int n) {
  return {_mm256_slli_epi32(v.a, n), _mm256_slli_epi32(v.b, n)};
}
LAB_INLINE Vi shift_right(Vi v, int n) {
  return {_mm256_srli_epi32(v.a, n), _mm256_srli_epi32(v.b, n)};
}
LAB_INLINE Vi sub_bytes(Vi x, Vi y) {
  return {_mm256_sub_epi8(x.a, y.a), _mm256_sub_epi8(x.b, y.b)};
}
LAB_INLINE Vf as_float(Vi v) {
  return {_mm256_castsi256_ps(v.a), _mm256_castsi256_ps(v.b)};
}
LAB_INLINE Vf to_float(Vi v) { return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)}; }
LAB_INLINE Vf load_bytes(const void* p) {  // 16 signed bytes
  const __m128i v = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return to_float(Vi{_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8))});
}

/// Signed byte i of each 32 bits, times 2^24: moved to the top, it needs no sign extension.
LAB_INLINE Vf byte_column(Vi v, int i) {
  if (i == 0) return to_float(shift_left(v, 24));
  if (i == 3) return to_float(bit_and(v, set_i(0xff000000u)));
  const int move = int(0x00808080u | unsigned(i) << 24);
  const __m256i lanes =
      _mm256_setr_epi32(0, 4 << 24, 8 << 24, 12 << 24, 0, 4 << 24, 8 << 24, 12 << 24);
  const __m256i from = _mm256_add_epi32(_mm256_set1_epi32(move), lanes);
  return to_float(Vi{_mm256_shuffle_epi8(v.a, from), _mm256_shuffle_epi8(v.b, from)});
}

/// What the sixteen codes of a nibble stand for.
using Codes = __m256i;
LAB_INLINE Codes make_codes(const blocks::NibbleCodes& c) {
  return _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(c.value)));
}
/// Low (half 0) or high nibbles of the four bytes, times 2^24.
LAB_INLINE void nibble_columns(Vi v, int half, Codes codes, Vf (&out)[4]) {
  const Vi code = bit_and(shift_right(v, 4 * half), set_i(0x0f0f0f0fu));
  const Vi bytes = {_mm256_shuffle_epi8(codes, code.a), _mm256_shuffle_epi8(codes, code.b)};
  for (int i = 0; i < 4; ++i) out[i] = byte_column(bytes, i);
}
/// The value of each byte, a code below 16.
LAB_INLINE Vi look_up(const blocks::NibbleCodes& c, Vi v) {
  const Codes codes = make_codes(c);
  return {_mm256_shuffle_epi8(codes, v.a), _mm256_shuffle_epi8(codes, v.b)};
}
/// Whole numbers from -127 to 127, as bytes.
LAB_INLINE void store_bytes(std::int8_t* p, Vf v) {
  const __m256i words =
      _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b));
  const __m256i in_order = _mm256_permute4x64_epi64(words, 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(in_order),
                                   _mm256_extracti128_si256(in_order, 1)));
}
/// Each 32 bits of `sum` plus its four codes of w times the four of x. A pair of products
/// must fit in 16 bits: codes are at most 63, or |w| <= 128 with the sign of w moved to x,
/// where |x| <= 127.
LAB_INLINE __m256i add_products(__m256i sum, __m256i w, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(w, x);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
template <bool kSigned>
LAB_INLINE Vi dot4(Vi sum, Vi w, Vi x) {
  if (!kSigned) return {add_products(sum.a, w.a, x.a), add_products(sum.b, w.b, x.b)};
  return {add_products(sum.a, _mm256_abs_epi8(w.a), _mm256_sign_epi8(x.a, w.a)),
          add_products(sum.b, _mm256_abs_epi8(w.b), _mm256_sign_epi8(x.b, w.b))};
}
/// (dot - kMagic) * scale, for the bits of a float; `minus` is -kMagic * scale.
LAB_INLINE Vf scale_dot(Vi dot, Vf scale, Vf minus) {
  return fma(as_float(dot), scale, minus);
}
