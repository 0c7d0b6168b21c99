// Arithmetic, bit, half and bfloat16 intrinsics.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "support.hpp"

namespace {

TEST_CASE("simt: bit intrinsics") {
  CHECK(__popc(0xf0f00001u) == 9);
  CHECK(__popcll(~0ull) == 64);
  CHECK(__clz(0) == 32);
  CHECK(__clz(1) == 31);
  CHECK(__clz(-1) == 0);
  CHECK(__clzll(1ll << 40) == 23);
  CHECK(__ffs(0) == 0);
  CHECK(__ffs(0x50) == 5);
  CHECK(__ffsll(1ll << 40) == 41);
  CHECK(__brev(1u) == 0x80000000u);
  CHECK(__brev(0x12345678u) == 0x1e6a2c48u);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7531u) == 0x77553311u);
  CHECK(__byte_perm(0x00000080u, 0, 0x8888u) == 0xffffffffu);  // bit 3: the sign, repeated
  CHECK(__byte_perm(0x00000080u, 0, 0x0001u) == 0x80808000u);
  CHECK(__funnelshift_l(0x80000000u, 0x00000001u, 1) == 3u);
  CHECK(__funnelshift_r(0x80000000u, 0x00000001u, 1) == 0xc0000000u);
  CHECK(__funnelshift_l(5u, 7u, 32) == 7u);  // the shift is taken modulo 32
  CHECK(__mulhi(-2, 1 << 30) == -1);
  CHECK(__umulhi(0xffffffffu, 0xffffffffu) == 0xfffffffeu);
  CHECK(__float_as_uint(-0.0f) == 0x80000000u);
  CHECK(__uint_as_float(0x3f800000u) == 1.0f);
}

TEST_CASE("simt: dp4a") {
  CHECK(__dp4a(0x01020304, 0x01010101, 5) == 15);
  CHECK(__dp4a(int(0xff80ff80u), int(0x807f807fu), 0) == 2 * (128 - 128 * 127));
  CHECK(__dp4a(0x7f7f7f7f, 0x7f7f7f7f, std::numeric_limits<int>::max()) ==
        std::numeric_limits<int>::min() + 4 * 127 * 127 - 1);  // wraps around
  CHECK(__dp4a(0xffffffffu, 0xffffffffu, 1u) == 4u * 255 * 255 + 1);
}

TEST_CASE("simt: conversions to integers saturate and take NaN for 0") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rn(3.5f) == 4);
  CHECK(__float2int_rn(-2.5f) == -2);
  CHECK(__float2int_rz(-2.9f) == -2);
  CHECK(__float2int_rd(-2.1f) == -3);
  CHECK(__float2int_ru(2.1f) == 3);
  CHECK(__float2int_rn(1e20f) == std::numeric_limits<int>::max());
  CHECK(__float2int_rn(-inf) == std::numeric_limits<int>::min());
  CHECK(__float2int_rn(std::nanf("")) == 0);
  CHECK(__float2uint_rn(-3.0f) == 0u);
  CHECK(__float2uint_rz(4294967040.0f) == 4294967040u);
}

TEST_CASE("simt: approximate functions are close, and have the GPU's special values") {
  for (const float x : {-20.0f, -1.5f, 0.0f, 0.3f, 1.0f, 30.0f}) {
    CHECK(__expf(x) == Approx(std::exp(double(x))).epsilon(1e-5));
    CHECK(__sinf(x) == Approx(std::sin(double(x))).margin(1e-6));
  }
  CHECK(__expf(-std::numeric_limits<float>::infinity()) == 0.0f);
  CHECK(rsqrtf(4.0f) == 0.5f);
  CHECK(std::isinf(rsqrtf(0.0f)));
  CHECK(__saturatef(2.0f) == 1.0f);
  CHECK(__saturatef(std::nanf("")) == 0.0f);
  CHECK(max(std::nanf(""), 1.0f) == 1.0f);  // CUDA's max is fmaxf
  CHECK(min(1u, -1) == 1u);
}

// ---- half and bfloat16, against the definition: the nearest representable number, ties to
// even, found by search

struct Format {
  int mantissa_bits, min_exponent, max_exponent;
};
constexpr Format kHalf{10, -14, 15}, kBFloat16{7, -126, 127};

/// x in the format, as a float, by scaling and the host's own rounding of integers.
double nearest(Format f, double x) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), f.min_exponent);
  const double step = std::ldexp(1.0, exponent - f.mantissa_bits);
  const double rounded = std::nearbyint(x / step) * step;
  const double largest =
      std::ldexp(2.0 - std::ldexp(1.0, -f.mantissa_bits), f.max_exponent);
  return std::fabs(rounded) > largest ? std::copysign(HUGE_VAL, x) : rounded;
}
bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

std::vector<float> edge_cases() {
  std::vector<float> v = {0.0f,
                          -0.0f,
                          1.0f,
                          65504.0f,
                          65519.996f,
                          65520.0f,
                          -65520.0f,
                          1e9f,
                          0x1p-24f,
                          0x1p-25f,
                          0x1.000002p-25f,
                          0x1.8p-24f,
                          0x1p-14f,
                          0x1.ffcp-15f,
                          0x1.ffep-15f,
                          0x1.fffp-15f,
                          1.00048828125f,
                          1.00146484375f,
                          2049.0f,
                          2051.0f,
                          0x1p-133f,
                          0x1p-149f,
                          3.3895314e38f,
                          3.4e38f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::nanf("")};
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i)
    v.push_back(std::bit_cast<float>(std::uint32_t(random())));
  for (int i = 0; i < 20000; ++i)
    v.push_back(std::ldexp(float(int(random() % 8192) - 4096), int(random() % 40) - 30));
  return v;
}

TEST_CASE("simt: float to half and bfloat16 rounds to nearest even") {
  int wrong = 0;
  for (const float x : edge_cases()) {
    wrong += !same(float(__float2half(x)), nearest(kHalf, x));
    wrong += !same(float(__float2bfloat16(x)), nearest(kBFloat16, x));
  }
  CHECK(wrong == 0);
  CHECK(__half_as_ushort(__float2half(std::nanf(""))) == 0x7fff);
  CHECK(__bfloat16_as_ushort(__float2bfloat16(-std::nanf(""))) == 0x7fff);
}

TEST_CASE("simt: every half and bfloat16 survives the way to float and back") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const __half h = __ushort_as_half(static_cast<unsigned short>(bits));
    const __nv_bfloat16 b = __ushort_as_bfloat16(static_cast<unsigned short>(bits));
    if (!__hisnan(h)) wrong += __half_as_ushort(__float2half(__half2float(h))) != bits;
    if (!__hisnan(b))
      wrong += __bfloat16_as_ushort(__float2bfloat16(__bfloat162float(b))) != bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("simt: 16-bit arithmetic rounds once") {
  std::mt19937 random(6);
  int wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    const auto pick = [&] {
      return __ushort_as_half(static_cast<unsigned short>(random()));
    };
    const __half a = pick(), b = pick(), c = pick();
    const double x = a, y = b,
                 z = c;  // long double sums below are exact enough to round once
    wrong += !same(float(__hadd(a, b)), nearest(kHalf, x + y));
    wrong += !same(float(__hmul(a, b)), nearest(kHalf, x * y));
    const long double exact = (long double)x * y + z;
    wrong += !same(float(__hfma(a, b, c)), std::isfinite(double(exact)) && exact != 0
                                               ? nearest(kHalf, double(exact))
                                               : double(exact));
  }
  CHECK(wrong == 0);
  // 2^-24 below a tie of two neighbours: rounding to float first would reach the tie.
  const __half tie = __hfma(__float2half(2048.0f), __float2half(1.0f), __float2half(1.0f));
  CHECK(float(tie) == 2048.0f);
  const __half below =
      __hfma(__float2half(0x1.004p0f), __float2half(0x1.ffcp-1f), __float2half(0.0f));
  CHECK(float(below) == float(nearest(kHalf, 0x1.004p0 * 0x1.ffcp-1)));
  const float fused = emulator::fma_round_to_odd(4096.0f, 0x1.002p-1f, 0x1p-20f);
  CHECK(double(fused) != 2049.0);  // odd: not the tie itself
}

TEST_CASE("simt: pairs of halves") {
  const __half2 a = __floats2half2_rn(1.5f, -2.0f), b = __half2half2(__float2half(4.0f));
  const float2 sum = __half22float2(__hadd2(a, b)), product = __half22float2(__hmul2(a, b));
  CHECK(sum.x == 5.5f);
  CHECK(sum.y == 2.0f);
  CHECK(product.x == 6.0f);
  CHECK(product.y == -8.0f);
  const float2 fused = __half22float2(__hfma2(a, b, a));
  CHECK(fused.x == 7.5f);
  CHECK(fused.y == -10.0f);
  CHECK(__low2float(__hmax2(a, b)) == 4.0f);
  CHECK(__high2float(__hmin2(a, b)) == -2.0f);
  CHECK(float(__hmax(__ushort_as_half(0x7fff), __float2half(1.0f))) == 1.0f);
  __half h = __float2half(1.0f);
  h += __float2half(0x1p-11f);  // half an ulp: to even
  CHECK(float(h) == 1.0f);
  const float2 low = __bfloat1622float2(__floats2bfloat162_rn(1.0f, 3.0f));
  CHECK(low.y == 3.0f);
}

}  // namespace
