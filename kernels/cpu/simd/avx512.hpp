// The vocabulary for AVX-512 F, BW, VL and DQ: Vf is 16 floats, Vi 16 times 32 bits.
// Included inside a namespace and a target region.

using Vf = __m512;
using Vi = __m512i;
// 12 running dots and 12 sums of 32 registers. Two tiles share each broadcast activation:
// one tile of 8 tokens is bound by loads, and a quarter slower.
constexpr int kBandTiles = 2;
constexpr int kTileTokens = 6;
constexpr int kScoreRows = 6;  // rows x vectors of attention scores at a time
constexpr int kScoreVectors = 2;
constexpr int kMixRows = 6;  // rows x vectors of attention output at a time
constexpr int kMixVectors = 4;
constexpr int kPeakChains = 16;  // two units x four cycles of latency, twice

// The maskz forms avoid warnings of GCC 12 about uninitialised values; the code is the
// same.
constexpr __mmask16 kAll = 0xffff;

LAB_INLINE Vf zero() { return _mm512_setzero_ps(); }
LAB_INLINE Vf set(float v) { return _mm512_set1_ps(v); }
LAB_INLINE Vf load(const float* p) { return _mm512_loadu_ps(p); }
LAB_INLINE Vf load(const Half* p) {
  return _mm512_maskz_cvtph_ps(kAll,
                               _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
LAB_INLINE Vf load(const BFloat16* p) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, v), 16));
}
LAB_INLINE void store(float* p, Vf v) { _mm512_storeu_ps(p, v); }
LAB_INLINE void store(Half* p, Vf v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_maskz_cvtps_ph(kAll, v, _MM_FROUND_TO_NEAREST_INT));
}
LAB_INLINE unsigned nan_lanes(Vf v) { return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q); }
LAB_INLINE unsigned equal_lanes(Vf a, Vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
LAB_INLINE void store(BFloat16* p, Vf v) {
  const Vi u = _mm512_castps_si512(v), upper = _mm512_maskz_srli_epi32(kAll, u, 16);
  const Vi half = _mm512_add_epi32(_mm512_set1_epi32(0x7fff),
                                   _mm512_and_si512(upper, _mm512_set1_epi32(1)));
  const Vi rounded = _mm512_maskz_srli_epi32(kAll, _mm512_add_epi32(u, half), 16);
  const Vi quiet = _mm512_or_si512(upper, _mm512_set1_epi32(64));
  const Vi r = _mm512_mask_mov_epi32(rounded, __mmask16(nan_lanes(v)), quiet);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(kAll, r));
}

LAB_INLINE Vf add(Vf a, Vf b) { return _mm512_add_ps(a, b); }
LAB_INLINE Vf sub(Vf a, Vf b) { return _mm512_sub_ps(a, b); }
LAB_INLINE Vf mul(Vf a, Vf b) { return _mm512_mul_ps(a, b); }
LAB_INLINE Vf div(Vf a, Vf b) { return _mm512_div_ps(a, b); }
LAB_INLINE Vf fma(Vf a, Vf b, Vf c) { return _mm512_fmadd_ps(a, b, c); }
LAB_INLINE Vf max(Vf a, Vf b) {
  return _mm512_maskz_max_ps(kAll, a, b);
}  // b if one is NaN
LAB_INLINE Vf min(Vf a, Vf b) {
  return _mm512_maskz_min_ps(kAll, a, b);
}  // b if one is NaN
LAB_INLINE Vf round(Vf v) {
  return _mm512_maskz_roundscale_ps(kAll, v, _MM_FROUND_TO_NEAREST_INT);
}
LAB_INLINE Vf scale2(Vf v, Vf n) { return _mm512_maskz_scalef_ps(kAll, v, n); }  // v * 2^n
LAB_INLINE float reduce_add(Vf v) {
  const __m256 a = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, v, 0),
                                 _mm512_maskz_extractf32x8_ps(0xff, v, 1));
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
LAB_INLINE float reduce_max(Vf v) {
  const __m256 a = _mm256_max_ps(_mm512_maskz_extractf32x8_ps(0xff, v, 0),
                                 _mm512_maskz_extractf32x8_ps(0xff, v, 1));
  const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

/// a and b hold 16 pairs in a row: their first and their second elements.
LAB_INLINE void split_pairs(Vf a, Vf b, Vf& first, Vf& second) {
  const Vi even =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  first = _mm512_permutex2var_ps(a, even, b);
  second = _mm512_permutex2var_ps(a, _mm512_or_si512(even, _mm512_set1_epi32(1)), b);
}
LAB_INLINE void join_pairs(Vf first, Vf second, Vf& a, Vf& b) {
  const Vi low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  a = _mm512_permutex2var_ps(first, low, second);
  b = _mm512_permutex2var_ps(first, _mm512_or_si512(low, _mm512_set1_epi32(8)), second);
}
LAB_INLINE void transpose(Vf (&v)[16]) {
  Vf a[16], b[16];
  for (int i = 0; i < 16; i += 2) {  // pairs of rows, then of pairs: 4 x 4 inside 128 bits
    a[i] = _mm512_maskz_unpacklo_ps(kAll, v[i], v[i + 1]);
    a[i + 1] = _mm512_maskz_unpackhi_ps(kAll, v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {  // then the 4 x 4 blocks
    const Vf low = _mm512_maskz_shuffle_f32x4(kAll, b[i], b[i + 4], 0x88);
    const Vf high = _mm512_maskz_shuffle_f32x4(kAll, b[i], b[i + 4], 0xdd);
    const Vf low2 = _mm512_maskz_shuffle_f32x4(kAll, b[i + 8], b[i + 12], 0x88);
    const Vf high2 = _mm512_maskz_shuffle_f32x4(kAll, b[i + 8], b[i + 12], 0xdd);
    v[i] = _mm512_maskz_shuffle_f32x4(kAll, low, low2, 0x88);
    v[i + 4] = _mm512_maskz_shuffle_f32x4(kAll, high, high2, 0x88);
    v[i + 8] = _mm512_maskz_shuffle_f32x4(kAll, low, low2, 0xdd);
    v[i + 12] = _mm512_maskz_shuffle_f32x4(kAll, high, high2, 0xdd);
  }
}

LAB_INLINE Vi load_i(const void* p) { return _mm512_loadu_si512(p); }
LAB_INLINE Vi set_i(std::uint32_t v) { return _mm512_set1_epi32(int(v)); }
LAB_INLINE Vi bit_and(Vi a, Vi b) { return _mm512_and_si512(a, b); }
LAB_INLINE void store_i(void* p, Vi v) { _mm512_storeu_si512(p, v); }
LAB_INLINE Vi bit_xor(Vi a, Vi b) { return _mm512_xor_si512(a, b); }
LAB_INLINE Vi bit_or(Vi a, Vi b) { return _mm512_or_si512(a, b); }
LAB_INLINE Vi shift_left(Vi v, int n) {
  return _mm512_maskz_slli_epi32(kAll, v, unsigned(n));
}
LAB_INLINE Vi shift_right(Vi v, int n) {
  return _mm512_maskz_srli_epi32(kAll, v, unsigned(n));
}
LAB_INLINE Vi sub_bytes(Vi a, Vi b) { return _mm512_sub_epi8(a, b); }
LAB_INLINE Vf as_float(Vi bits) { return _mm512_castsi512_ps(bits); }
LAB_INLINE Vf to_float(Vi v) { return _mm512_maskz_cvtepi32_ps(kAll, v); }
LAB_INLINE Vf load_bytes(const void* p) {  // 16 signed bytes
  const __m128i v = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return to_float(_mm512_maskz_cvtepi8_epi32(kAll, v));
}

/// Signed byte i of each 32 bits, times 2^24: moved to the top, it needs no sign extension.
LAB_INLINE Vf byte_column(Vi v, int i) {
  if (i == 0) return to_float(_mm512_maskz_slli_epi32(kAll, v, 24));
  if (i == 3) return to_float(_mm512_and_si512(v, _mm512_set1_epi32(int(0xff000000u))));
  const int move = int(0x00808080u | unsigned(i) << 24);
  const Vi lanes = _mm512_set4_epi32(12 << 24, 8 << 24, 4 << 24, 0);
  return to_float(_mm512_shuffle_epi8(v, _mm512_add_epi32(_mm512_set1_epi32(move), lanes)));
}

/// What the sixteen codes of a nibble stand for, times 2^24.
using Codes = Vf;
LAB_INLINE Codes make_codes(const blocks::NibbleCodes& c) {
  return mul(load_bytes(c.value), set(0x1p24f));
}
/// Low (half 0) or high nibbles of the four bytes. The permutation looks at four bits only.
LAB_INLINE void nibble_columns(Vi v, int half, Codes codes, Vf (&out)[4]) {
  for (int i = 0; i < 4; ++i)
    out[i] = _mm512_maskz_permutexvar_ps(kAll, shift_right(v, 8 * i + 4 * half), codes);
}
/// The value of each byte, a code below 16.
LAB_INLINE Vi look_up(const blocks::NibbleCodes& c, Vi v) {
  const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(c.value));
  return _mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(kAll, values), v);
}
/// Whole numbers from -127 to 127, as bytes.
LAB_INLINE void store_bytes(std::int8_t* p, Vf v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm512_maskz_cvtepi32_epi8(kAll, _mm512_maskz_cvtps_epi32(kAll, v)));
}
/// (dot - kMagic) * scale, for the bits of a float; `minus` is -kMagic * scale.
LAB_INLINE Vf scale_dot(Vi dot, Vf scale, Vf minus) {
  return fma(as_float(dot), scale, minus);
}
