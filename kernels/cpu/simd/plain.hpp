// The vocabulary in plain C++, for any CPU: Vf is 16 floats, Vi 16 times 32 bits. The compiler
// turns the loops into what vectors it has. Included inside a namespace.

struct Vf { float v[16]; };
struct Vi { std::uint32_t v[16]; };
constexpr int kTileTokens = 4;
constexpr int kScoreRows = 4;
constexpr int kMixRows = 2;
constexpr int kMixVectors = 2;
constexpr int kPeakChains = 2;

/// `expression` for each lane i.
#define LAB_EACH(type, expression)                     \
  type r;                                              \
  for (int i = 0; i < 16; ++i) r.v[i] = (expression);  \
  return r

LAB_INLINE Vf zero() { return {}; }
LAB_INLINE Vf set(float v) { LAB_EACH(Vf, v); }
template <class T>
LAB_INLINE Vf load(const T* p) { LAB_EACH(Vf, lab::to_float(p[i])); }
template <class T>
LAB_INLINE void store(T* p, const Vf& v) {
  for (int i = 0; i < 16; ++i) p[i] = from_float<T>(v.v[i]);
}
LAB_INLINE unsigned nan_lanes(const Vf& v) {
  unsigned bits = 0;
  for (int i = 0; i < 16; ++i) bits |= unsigned(v.v[i] != v.v[i]) << i;
  return bits;
}
LAB_INLINE unsigned equal_lanes(const Vf& a, const Vf& b) {
  unsigned bits = 0;
  for (int i = 0; i < 16; ++i) bits |= unsigned(a.v[i] == b.v[i]) << i;
  return bits;
}

LAB_INLINE Vf add(const Vf& a, const Vf& b) { LAB_EACH(Vf, a.v[i] + b.v[i]); }
LAB_INLINE Vf sub(const Vf& a, const Vf& b) { LAB_EACH(Vf, a.v[i] - b.v[i]); }
LAB_INLINE Vf mul(const Vf& a, const Vf& b) { LAB_EACH(Vf, a.v[i] * b.v[i]); }
LAB_INLINE Vf div(const Vf& a, const Vf& b) { LAB_EACH(Vf, a.v[i] / b.v[i]); }
LAB_INLINE Vf fma(const Vf& a, const Vf& b, const Vf& c) { LAB_EACH(Vf, a.v[i] * b.v[i] + c.v[i]); }
LAB_INLINE Vf max(const Vf& a, const Vf& b) { LAB_EACH(Vf, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
LAB_INLINE Vf min(const Vf& a, const Vf& b) { LAB_EACH(Vf, a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
/// For |v| < 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
LAB_INLINE Vf round(const Vf& v) { LAB_EACH(Vf, (v.v[i] + 0x1.8p23f) - 0x1.8p23f); }
/// 2^n for a whole n whose result is a normal number.
LAB_INLINE float power2(float n) {
  const std::uint32_t whole = std::bit_cast<std::uint32_t>(n + 0x1.8p23f) - 0x4b400000u;
  return std::bit_cast<float>((whole + 127u) << 23);
}
LAB_INLINE Vf scale2(const Vf& v, const Vf& n) {  // in two steps: 2^n alone may be subnormal
  const Vf one = round(mul(n, set(0.5f)));
  LAB_EACH(Vf, v.v[i] * power2(one.v[i]) * power2(n.v[i] - one.v[i]));
}
LAB_INLINE float reduce_add(Vf v) {
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) v.v[i] += v.v[i + step];
  return v.v[0];
}
LAB_INLINE float reduce_max(const Vf& v) {
  float m = v.v[0];
  for (int i = 1; i < 16; ++i) m = m > v.v[i] ? m : v.v[i];
  return m;
}

/// a and b hold 16 pairs in a row: their first and their second elements.
LAB_INLINE void split_pairs(const Vf& a, const Vf& b, Vf& first, Vf& second) {
  for (int i = 0; i < 8; ++i) {
    first.v[i] = a.v[2 * i], second.v[i] = a.v[2 * i + 1];
    first.v[i + 8] = b.v[2 * i], second.v[i + 8] = b.v[2 * i + 1];
  }
}
LAB_INLINE void join_pairs(const Vf& first, const Vf& second, Vf& a, Vf& b) {
  for (int i = 0; i < 8; ++i) {
    a.v[2 * i] = first.v[i], a.v[2 * i + 1] = second.v[i];
    b.v[2 * i] = first.v[i + 8], b.v[2 * i + 1] = second.v[i + 8];
  }
}
LAB_INLINE void transpose(Vf (&v)[16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < i; ++j) std::swap(v[i].v[j], v[j].v[i]);
}

LAB_INLINE Vi load_i(const void* p) {
  Vi r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
LAB_INLINE Vi set_i(std::uint32_t v) { LAB_EACH(Vi, v); }
LAB_INLINE Vi bit_and(const Vi& a, const Vi& b) { LAB_EACH(Vi, a.v[i] & b.v[i]); }
LAB_INLINE Vi bit_or(const Vi& a, const Vi& b) { LAB_EACH(Vi, a.v[i] | b.v[i]); }
LAB_INLINE Vi shift_left(const Vi& v, int n) { LAB_EACH(Vi, v.v[i] << n); }
LAB_INLINE Vi shift_right(const Vi& v, int n) { LAB_EACH(Vi, v.v[i] >> n); }
/// In each byte: with the top bit held apart, no byte borrows from its neighbour.
LAB_INLINE Vi sub_bytes(const Vi& a, const Vi& b) {
  constexpr std::uint32_t kTop = 0x80808080u;
  LAB_EACH(Vi, ((a.v[i] | kTop) - (b.v[i] & ~kTop)) ^ ((a.v[i] ^ ~b.v[i]) & kTop));
}
LAB_INLINE Vf as_float(const Vi& v) { LAB_EACH(Vf, std::bit_cast<float>(v.v[i])); }
LAB_INLINE Vf load_bytes(const void* p) {  // 16 signed bytes
  LAB_EACH(Vf, float(static_cast<const std::int8_t*>(p)[i]));
}

/// Signed byte k of each 32 bits, times 2^24: moved to the top, it needs no sign extension.
LAB_INLINE Vf byte_column(const Vi& v, int k) {
  LAB_EACH(Vf, float(std::int32_t((v.v[i] << (24 - 8 * k)) & 0xff000000u)));
}

/// What the sixteen codes of a nibble stand for, times 2^24.
using Codes = Vf;
LAB_INLINE Codes make_codes(const blocks::NibbleCodes& c) { return mul(load_bytes(c.value), set(0x1p24f)); }
/// Low (half 0) or high nibbles of the four bytes.
LAB_INLINE void nibble_columns(const Vi& v, int half, const Codes& codes, Vf (&out)[4]) {
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < 16; ++i) out[k].v[i] = codes.v[(v.v[i] >> (8 * k + 4 * half)) & 15u];
}
#undef LAB_EACH
