/// @file
/// Reading the planes of kernels/cuda/planes.hpp: one type for each weight format.
///
/// A quantised weight is scale * (code - zero) - min. Codes come as quads: four
/// neighbouring columns as the bytes of a word, which one byte permutation turns into
/// floats. Scales times codes have at most 23 bits, so these products are exact in f32: a
/// weight is rounded once, and it does not matter whether the compiler fuses the
/// multiplication with the subtraction.
#pragma once

#include "cpu/blocks.hpp"
#include "cuda/compat.hpp"
#include "cuda/planes.hpp"

namespace lab::LAB_GPU {

/// The planes of a matrix in device memory.
struct Planes {
  const std::byte* plane[kPlanes];
  std::int64_t blocks;  // of a row
};

namespace {

/// Element i of a plane seen as an array of T.
template <class T>
__device__ __forceinline__ T load(const std::byte* plane, std::int64_t i) {
  return __ldg(reinterpret_cast<const T*>(plane) + i);
}

/// Byte i of a quad, minus `zero`. The byte becomes the mantissa of 2^23 + byte: one
/// permutation and one subtraction, where a conversion would wait for a unit that is four
/// times as slow as these.
template <int kZero>
__device__ __forceinline__ float quad_value(std::uint32_t quad, int i) {
  return __uint_as_float(__byte_perm(quad, 0x4b000000u, 0x7540u | unsigned(i))) -
         float((1 << 23) + kZero);
}

// ----- codes of 16 columns, half a block: four quads. load() reads a block in the widest
// loads there are, load_half() one half of it.

struct Nibbles {
  std::uint32_t word[2];

  __device__ std::uint32_t quad(int j) const {
    return (word[j / 2] >> (4 * (j % 2))) & 0x0f0f0f0fu;
  }
  static __device__ void load(Nibbles (&c)[2], const Planes& p, std::int64_t block) {
    const uint4 v = LAB_GPU::load<uint4>(p.plane[kCodes], block);
    c[0] = {{v.x, v.y}};
    c[1] = {{v.z, v.w}};
  }
  static __device__ Nibbles load_half(const Planes& p, std::int64_t block, int half) {
    const uint2 v = LAB_GPU::load<uint2>(p.plane[kCodes], 2 * block + half);
    return {{v.x, v.y}};
  }
};

struct Pairs {
  std::uint32_t word;

  __device__ std::uint32_t quad(int j) const { return (word >> (2 * j)) & 0x03030303u; }
  static __device__ void load(Pairs (&c)[2], const Planes& p, std::int64_t block) {
    const uint2 v = LAB_GPU::load<uint2>(p.plane[kCodes], block);
    c[0] = {v.x};
    c[1] = {v.y};
  }
  static __device__ Pairs load_half(const Planes& p, std::int64_t block, int half) {
    return {LAB_GPU::load<std::uint32_t>(p.plane[kCodes], 2 * block + half)};
  }
};

struct Bytes {
  std::uint32_t word[4];

  __device__ std::uint32_t quad(int j) const { return word[j]; }
  static __device__ void load(Bytes (&c)[2], const Planes& p, std::int64_t block) {
    c[0] = load_half(p, block, 0);
    c[1] = load_half(p, block, 1);
  }
  static __device__ Bytes load_half(const Planes& p, std::int64_t block, int half) {
    const uint4 v = LAB_GPU::load<uint4>(p.plane[kCodes], 2 * block + half);
    return {{v.x, v.y, v.z, v.w}};
  }
};

/// Low with kWidth more bits from the extra plane, above its kAt.
template <class Low, int kWidth, int kAt>
struct Extended {
  Low low;
  std::uint32_t extra;

  __device__ std::uint32_t quad(int j) const {
    constexpr std::uint32_t kMask = ((1u << kWidth) - 1) * 0x01010101u;
    return low.quad(j) | ((extra >> (kWidth * j)) & kMask) << kAt;
  }
  static __device__ void load(Extended (&c)[2], const Planes& p, std::int64_t block) {
    Low low[2];
    Low::load(low, p, block);
    if constexpr (kWidth == 1) {  // one word for both halves
      const auto v = LAB_GPU::load<std::uint32_t>(p.plane[kExtra], block);
      c[0] = {low[0], v};
      c[1] = {low[1], v >> 4};
    } else {
      const uint2 v = LAB_GPU::load<uint2>(p.plane[kExtra], block);
      c[0] = {low[0], v.x};
      c[1] = {low[1], v.y};
    }
  }
  static __device__ Extended load_half(const Planes& p, std::int64_t block, int half) {
    const std::uint32_t v =
        kWidth == 1 ? LAB_GPU::load<std::uint32_t>(p.plane[kExtra], block) >> (4 * half)
                    : LAB_GPU::load<std::uint32_t>(p.plane[kExtra], 2 * block + half);
    return {Low::load_half(p, block, half), v};
  }
};

/// Nibbles that stand for the values of blocks::kIq4Codes; quads of value + 128.
struct Iq4Nibbles {
  Nibbles low;

  /// Four of the values, biased, as the bytes of a word.
  static constexpr std::uint32_t values(int first) {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i)
      word |= std::uint32_t(cpu::blocks::kIq4Codes.value[first + i] + 128) << (8 * i);
    return word;
  }
  __device__ std::uint32_t quad(int j) const {
    constexpr std::uint32_t k0 = values(0), k4 = values(4), k8 = values(8),
                            k12 = values(12);
    const std::uint32_t codes = low.quad(j);
    // The codes as four nibbles: what a byte permutation selects by. It looks up their low
    // three bits in each half of the table, and the fourth bit chooses between the two.
    const std::uint32_t select = __byte_perm(codes | codes >> 4, 0, 0x4420);
    const std::uint32_t below = __byte_perm(k0, k4, select & 0x7777u);
    const std::uint32_t above = __byte_perm(k8, k12, select & 0x7777u);
    return __byte_perm(below, above, 0x3210u | (select >> 1 & 0x4444u));
  }
  static __device__ void load(Iq4Nibbles (&c)[2], const Planes& p, std::int64_t block) {
    Nibbles low[2];
    Nibbles::load(low, p, block);
    c[0] = {low[0]};
    c[1] = {low[1]};
  }
  static __device__ Iq4Nibbles load_half(const Planes& p, std::int64_t block, int half) {
    return {Nibbles::load_half(p, block, half)};
  }
};

// ----- scales of a block: value(half) is (scale, min). kPerBlock says whether the halves
// differ.

/// h d
struct Scale {
  static constexpr int kPerBlock = 1;
  static constexpr bool kMinima = false;
  __half d;

  __device__ float2 value(int) const { return {__half2float(d), 0.0f}; }
  static __device__ Scale load(const Planes& p, std::int64_t block) {
    return {LAB_GPU::load<__half>(p.plane[kScales], block)};
  }
};

/// h d | h m, where m is added
struct ScaleOffset {
  static constexpr int kPerBlock = 1;
  static constexpr bool kMinima = true;
  __half2 dm;

  __device__ float2 value(int) const {
    const float2 v = __half22float2(dm);
    return {v.x, -v.y};
  }
  static __device__ ScaleOffset load(const Planes& p, std::int64_t block) {
    return {LAB_GPU::load<__half2>(p.plane[kScales], block)};
  }
};

/// u8 scale | u8 min; h d | h dmin
struct ScaleMinK {
  static constexpr int kPerBlock = 1;
  static constexpr bool kMinima = true;
  uchar2 code;
  __half2 d;

  __device__ float2 value(int) const {
    const float2 v = __half22float2(d);
    return {v.x * float(code.x), v.y * float(code.y)};
  }
  static __device__ ScaleMinK load(const Planes& p, std::int64_t block) {
    return {LAB_GPU::load<uchar2>(p.plane[kScales], block),
            LAB_GPU::load<__half2>(p.plane[kSuper], block / 8)};
  }
};

/// i8 scale | i8 scale; h d
struct HalfScalesK {
  static constexpr int kPerBlock = 2;
  static constexpr bool kMinima = false;
  char2 code;
  __half d;

  __device__ float2 value(int half) const {
    return {__half2float(d) * float(half ? code.y : code.x), 0.0f};
  }
  static __device__ HalfScalesK load(const Planes& p, std::int64_t block) {
    return {LAB_GPU::load<char2>(p.plane[kScales], block),
            LAB_GPU::load<__half>(p.plane[kSuper], block / 8)};
  }
};

/// two bytes, each scale | min << 4; h d | h dmin
struct HalfScalesMinK {
  static constexpr int kPerBlock = 2;
  static constexpr bool kMinima = true;
  uchar2 code;
  __half2 d;

  __device__ float2 value(int half) const {
    const unsigned c = half ? code.y : code.x;
    const float2 v = __half22float2(d);
    return {v.x * float(c & 15u), v.y * float(c >> 4)};
  }
  static __device__ HalfScalesMinK load(const Planes& p, std::int64_t block) {
    return {LAB_GPU::load<uchar2>(p.plane[kScales], block),
            LAB_GPU::load<__half2>(p.plane[kSuper], block / 8)};
  }
};

// ----- formats

template <class C, class S, int Zero>
struct Quantized {
  using Codes = C;
  using Scales = S;
  static constexpr bool kQuantized = true;
  static constexpr int kZero = Zero;
};
using Q4_0 = Quantized<Nibbles, Scale, 8>;
using Q4_1 = Quantized<Nibbles, ScaleOffset, 0>;
using Q5_0 = Quantized<Extended<Nibbles, 1, 4>, Scale, 16>;
using Q5_1 = Quantized<Extended<Nibbles, 1, 4>, ScaleOffset, 0>;
using Q8_0 = Quantized<Bytes, Scale, 128>;
using IQ4_NL = Quantized<Iq4Nibbles, Scale, 128>;
using Q2_K = Quantized<Pairs, HalfScalesMinK, 0>;
using Q3_K = Quantized<Extended<Pairs, 1, 2>, HalfScalesK, 4>;
using Q4_K = Quantized<Nibbles, ScaleMinK, 0>;
using Q5_K = Quantized<Extended<Nibbles, 1, 4>, ScaleMinK, 0>;
using Q6_K = Quantized<Extended<Nibbles, 2, 4>, HalfScalesK, 32>;

/// F32, F16, BF16: sixteen bytes are 4 or 8 columns.
template <class T>
struct Floats {
  using Element = T;
  static constexpr bool kQuantized = false;
  static constexpr int kPerVector = int(16 / sizeof(T));

  /// Quad j of a vector.
  static __device__ void quad(const uint4& v, int j, float (&out)[4]) {
    if constexpr (sizeof(T) == 4) {
      const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) out[i] = __uint_as_float(words[i]);
    } else {
      const std::uint32_t words[2] = {j ? v.z : v.x, j ? v.w : v.y};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float2 pair = unpack(words[i]);
        out[2 * i] = pair.x;
        out[2 * i + 1] = pair.y;
      }
    }
  }
  static __device__ float2 unpack(std::uint32_t word) {
    if constexpr (std::is_same_v<T, __half>) {
      __half2 pair;
      memcpy(&pair, &word, sizeof pair);
      return __half22float2(pair);
    } else {
      return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
    }
  }
};
using F32 = Floats<float>;
using F16 = Floats<__half>;
using BF16 = Floats<__nv_bfloat16>;

/// Calls f(Format{}) with the format of `dtype`.
template <class Function>
void with_format(DType dtype, Function&& f) {
  switch (dtype) {
    case DType::f32:
      return f(F32{});
    case DType::f16:
      return f(F16{});
    case DType::bf16:
      return f(BF16{});
    case DType::q4_0:
      return f(Q4_0{});
    case DType::q4_1:
      return f(Q4_1{});
    case DType::q5_0:
      return f(Q5_0{});
    case DType::q5_1:
      return f(Q5_1{});
    case DType::q8_0:
      return f(Q8_0{});
    case DType::q2_k:
      return f(Q2_K{});
    case DType::q3_k:
      return f(Q3_K{});
    case DType::q4_k:
      return f(Q4_K{});
    case DType::q5_k:
      return f(Q5_K{});
    case DType::q6_k:
      return f(Q6_K{});
    case DType::iq4_nl:
      return f(IQ4_NL{});
  }
}

}  // namespace
}  // namespace lab::LAB_GPU
