// The vocabulary for any CPU, in the vector types of GCC and clang: Vf is 16 floats, Vi 16
// times 32 bits. The compiler splits them into the vectors that it has. Included inside a
// namespace.

using Vf [[gnu::vector_size(64)]] = float;
using Vi [[gnu::vector_size(64)]] = std::uint32_t;
using Vs [[gnu::vector_size(64)]] = std::int32_t;
using Vh [[gnu::vector_size(64)]] = std::int16_t;
constexpr int kBandTiles = 1;
constexpr int kTileTokens = 4;
constexpr int kSignedZero = 128;  // dot4 takes unsigned codes
constexpr int kScoreRows = 4;     // rows x vectors of attention scores at a time
constexpr int kScoreVectors = 1;
constexpr int kMixRows = 2;  // rows x vectors of attention output at a time
constexpr int kMixVectors = 2;
constexpr int kPeakChains = 2;

LAB_INLINE Vf zero() { return Vf{}; }
LAB_INLINE Vf set(float v) { return Vf{} + v; }
LAB_INLINE Vf load(const float* p) {
  Vf v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
// Loops over lanes stay functions: inlined into every kernel they multiply compile time.
template <class T>
[[gnu::noinline]] static Vf load(const T* p) {
  float v[16];
  for (int i = 0; i < 16; ++i) v[i] = lab::to_float(p[i]);
  return load(v);
}
LAB_INLINE void store(float* p, Vf v) { std::memcpy(p, &v, sizeof v); }
template <class T>
[[gnu::noinline]] static void store(T* p, Vf v) {
  for (int i = 0; i < 16; ++i) p[i] = from_float<T>(v[i]);
}
LAB_INLINE unsigned lane_bits(Vs true_lanes) {
  unsigned bits = 0;
  for (int i = 0; i < 16; ++i) bits |= unsigned(true_lanes[i] != 0) << i;
  return bits;
}
LAB_INLINE unsigned nan_lanes(Vf v) { return lane_bits(v != v); }
LAB_INLINE unsigned equal_lanes(Vf a, Vf b) { return lane_bits(a == b); }

LAB_INLINE Vf add(Vf a, Vf b) { return a + b; }
LAB_INLINE Vf sub(Vf a, Vf b) { return a - b; }
LAB_INLINE Vf mul(Vf a, Vf b) { return a * b; }
LAB_INLINE Vf div(Vf a, Vf b) { return a / b; }
LAB_INLINE Vf fma(Vf a, Vf b, Vf c) { return a * b + c; }
LAB_INLINE Vf max(Vf a, Vf b) { return a > b ? a : b; }  // b if one is NaN
LAB_INLINE Vf min(Vf a, Vf b) { return a < b ? a : b; }  // b if one is NaN
/// For |v| < 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
LAB_INLINE Vf round(Vf v) { return (v + 0x1.8p23f) - 0x1.8p23f; }
/// 2^n for a whole n whose result is a normal number.
LAB_INLINE Vf power2(Vf n) {
  const Vi whole = std::bit_cast<Vi>(n + 0x1.8p23f) - 0x4b400000u;
  return std::bit_cast<Vf>((whole + 127u) << 23);
}
LAB_INLINE Vf scale2(Vf v, Vf n) {  // in two steps: 2^n alone may be subnormal
  const Vf one = round(n * 0.5f);
  return v * power2(one) * power2(n - one);
}
[[gnu::noinline]] static float reduce_add(Vf v) {
  float sum[16];
  store(sum, v);
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) sum[i] += sum[i + step];
  return sum[0];
}
[[gnu::noinline]] static float reduce_max(Vf v) {
  float m = v[0];
  for (int i = 1; i < 16; ++i) m = m > v[i] ? m : v[i];
  return m;
}

/// a and b hold 16 pairs in a row: their first and their second elements.
LAB_INLINE void split_pairs(Vf a, Vf b, Vf& first, Vf& second) {
  for (int i = 0; i < 8; ++i) {
    first[i] = a[2 * i], second[i] = a[2 * i + 1];
    first[i + 8] = b[2 * i], second[i + 8] = b[2 * i + 1];
  }
}
LAB_INLINE void join_pairs(Vf first, Vf second, Vf& a, Vf& b) {
  for (int i = 0; i < 8; ++i) {
    a[2 * i] = first[i], a[2 * i + 1] = second[i];
    b[2 * i] = first[i + 8], b[2 * i + 1] = second[i + 8];
  }
}
[[gnu::noinline]] static void transpose(Vf (&v)[16]) {
  float m[16][16];
  for (int i = 0; i < 16; ++i) store(m[i], v[i]);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < i; ++j) std::swap(m[i][j], m[j][i]);
  for (int i = 0; i < 16; ++i) v[i] = load(m[i]);
}

LAB_INLINE Vi load_i(const void* p) {
  Vi v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
LAB_INLINE Vi set_i(std::uint32_t v) { return Vi{} + v; }
LAB_INLINE Vi bit_and(Vi a, Vi b) { return a & b; }
LAB_INLINE void store_i(void* p, Vi v) { std::memcpy(p, &v, sizeof v); }
LAB_INLINE Vi bit_xor(Vi a, Vi b) { return a ^ b; }
LAB_INLINE Vi bit_or(Vi a, Vi b) { return a | b; }
LAB_INLINE Vi shift_left(Vi v, int n) { return v << n; }
LAB_INLINE Vi shift_right(Vi v, int n) { return v >> n; }
/// In each byte: with the top bit held apart, no byte borrows from its neighbour.
LAB_INLINE Vi sub_bytes(Vi a, Vi b) {
  constexpr std::uint32_t kTop = 0x80808080u;
  return ((a | kTop) - (b & ~kTop)) ^ ((a ^ ~b) & kTop);
}
LAB_INLINE Vf as_float(Vi v) { return std::bit_cast<Vf>(v); }
[[gnu::noinline]] static Vf load_bytes(const void* p) {  // 16 signed bytes
  float v[16];
  for (int i = 0; i < 16; ++i) v[i] = float(static_cast<const std::int8_t*>(p)[i]);
  return load(v);
}

/// Signed byte i of each 32 bits, times 2^24: moved to the top, it needs no sign extension.
LAB_INLINE Vf byte_column(Vi v, int i) {
  const Vi top = (v << (24 - 8 * i)) & 0xff000000u;
  return __builtin_convertvector(std::bit_cast<Vs>(top), Vf);
}

/// What the sixteen codes of a nibble stand for, times 2^24.
using Codes = const std::int8_t*;
LAB_INLINE Codes make_codes(const blocks::NibbleCodes& c) { return c.value; }
/// Low (half 0) or high nibbles of the four bytes.
[[gnu::noinline]] static void nibble_columns(Vi v, int half, Codes codes, Vf (&out)[4]) {
  for (int i = 0; i < 4; ++i) {
    const Vi code = (v >> (8 * i + 4 * half)) & 15u;
    float value[16];
    for (int lane = 0; lane < 16; ++lane) value[lane] = float(codes[code[lane]]) * 0x1p24f;
    out[i] = load(value);
  }
}
/// The value of each byte, a code below 16.
[[gnu::noinline]] static Vi look_up(const blocks::NibbleCodes& c, Vi v) {
  std::uint8_t b[64];
  store_i(b, v);
  for (std::uint8_t& code : b) code = std::uint8_t(c.value[code]);
  return load_i(b);
}
/// Whole numbers from -127 to 127, as bytes.
[[gnu::noinline]] static void store_bytes(std::int8_t* p, Vf v) {
  for (int i = 0; i < 16; ++i) p[i] = std::int8_t(v[i]);
}
/// The sum of the two 16-bit numbers in each 32 bits.
LAB_INLINE Vs add_pairs(Vh v) {
  const Vs pair = std::bit_cast<Vs>(v);
  return ((pair << 16) >> 16) + (pair >> 16);
}
/// Each 32 bits of `sum` plus its four unsigned codes of w times the four signed of x; a
/// product of two bytes fits in 16 bits.
template <bool>
LAB_INLINE Vi dot4(Vi sum, Vi w, Vi x) {
  const Vh x_even = (std::bit_cast<Vh>(x) << 8) >> 8, x_odd = std::bit_cast<Vh>(x) >> 8;
  const Vh w_even = std::bit_cast<Vh>(w & 0x00ff00ffu);
  const Vh w_odd = std::bit_cast<Vh>((w >> 8) & 0x00ff00ffu);
  return sum + std::bit_cast<Vi>(add_pairs(w_even * x_even) + add_pairs(w_odd * x_odd));
}
/// (dot - kMagic) * scale, for the bits of a float. Exact: fma here rounds twice.
LAB_INLINE Vf scale_dot(Vi dot, Vf scale, Vf) { return (as_float(dot) - kMagic) * scale; }
