#include "lab/kernels/dequantize.hpp"

#include "cpu/blocks.hpp"
#include "cuda/compat.hpp"
#include "lab/kernels/check.hpp"

// A thread a weight: neighbours read the same bytes or the next, and write the next float.
// The layouts are in kernels/cpu/dequantize.cpp. Scales times codes have at most 23 bits,
// so that these products are exact in f32: the results are the CPU's bits, whether or not
// the compiler fuses a multiplication with the subtraction that follows.
namespace lab::LAB_GPU {
namespace {

namespace blocks = cpu::blocks;
using Byte = std::uint8_t;
constexpr int kThreads = 256;

/// At any alignment.
__device__ unsigned word16(const Byte* b) { return b[0] | unsigned(b[1]) << 8; }
__device__ float half_at(const Byte* b) {
  const auto bits = static_cast<std::uint16_t>(word16(b));
  __half h;
  memcpy(&h, &bits, sizeof h);
  return __half2float(h);
}

/// Weight l of a block of 32: `heads` f16 values, a fifth bit or not, then nibbles.
template <int kHeads, bool kFifth>
__device__ int nibble_code(const Byte* b, int l) {
  const Byte* qs = b + 2 * kHeads + (kFifth ? 4 : 0);
  int code = (qs[l % 16] >> (l / 16 * 4)) & 15;
  if (kFifth) code |= ((b[2 * kHeads + l / 8] >> (l % 8)) & 1) << 4;
  return code;
}
/// Eight values of IQ4_NL as bytes, plus 128.
constexpr std::uint64_t iq4_values(int first) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < 8; ++i)
    bytes |= std::uint64_t(blocks::kIq4Codes.value[first + i] + 128) << (8 * i);
  return bytes;
}
__device__ float iq4_value(int code) {
  constexpr std::uint64_t kLow = iq4_values(0), kHigh = iq4_values(8);
  return float(int((code < 8 ? kLow : kHigh) >> (code % 8 * 8) & 255u) - 128);
}

__device__ float q2_k(const Byte* b, int l) {
  const int code = (b[16 + l / 128 * 32 + l % 32] >> (l / 32 % 4 * 2)) & 3;
  const int s = b[l / 16];
  return half_at(b + 80) * float(s & 15) * float(code) - half_at(b + 82) * float(s >> 4);
}
__device__ float q3_k(const Byte* b, int l) {
  const int low = (b[32 + l / 128 * 32 + l % 32] >> (l / 32 % 4 * 2)) & 3;
  const int code = low | ((b[l % 32] >> (l / 32)) & 1) << 2;
  return half_at(b + 108) * float(blocks::q3_k_scale(b, l / 16)) * float(code - 4);
}
template <bool kFifth>
__device__ float q45_k(const Byte* b, int l) {
  const int part = l / 32;
  int code = (b[(kFifth ? 48 : 16) + part / 2 * 32 + l % 32] >> (part % 2 * 4)) & 15;
  if (kFifth) code |= ((b[16 + l % 32] >> part) & 1) << 4;
  const blocks::ScaleMin s = blocks::q45_k_scale(b + 4, part);
  return half_at(b) * float(s.scale) * float(code) - half_at(b + 2) * float(s.min);
}
__device__ float q6_k(const Byte* b, int l) {
  const int half = l / 128, plane = l / 32 % 4;
  const int low = (b[64 * half + plane % 2 * 32 + l % 32] >> (plane / 2 * 4)) & 15;
  const int code = low | ((b[128 + 32 * half + l % 32] >> (2 * plane)) & 3) << 4;
  return half_at(b + 208) * float(static_cast<signed char>(b[192 + l / 16])) *
         float(code - 32);
}

/// Weight l of a block.
template <DType kDType>
__device__ float weight(const Byte* b, int l) {
  if constexpr (kDType == DType::f32)
    return __uint_as_float(word16(b) | word16(b + 2) << 16);
  else if constexpr (kDType == DType::f16)
    return half_at(b);
  else if constexpr (kDType == DType::bf16)
    return __uint_as_float(word16(b) << 16);
  else if constexpr (kDType == DType::q4_0)
    return float(nibble_code<1, false>(b, l) - 8) * half_at(b);
  else if constexpr (kDType == DType::q4_1)
    return float(nibble_code<2, false>(b, l)) * half_at(b) + half_at(b + 2);
  else if constexpr (kDType == DType::q5_0)
    return float(nibble_code<1, true>(b, l) - 16) * half_at(b);
  else if constexpr (kDType == DType::q5_1)
    return float(nibble_code<2, true>(b, l)) * half_at(b) + half_at(b + 2);
  else if constexpr (kDType == DType::q8_0)
    return float(static_cast<signed char>(b[2 + l])) * half_at(b);
  else if constexpr (kDType == DType::iq4_nl)
    return half_at(b) * iq4_value(nibble_code<1, false>(b, l));
  else if constexpr (kDType == DType::q2_k)
    return q2_k(b, l);
  else if constexpr (kDType == DType::q3_k)
    return q3_k(b, l);
  else if constexpr (kDType == DType::q6_k)
    return q6_k(b, l);
  else
    return q45_k<kDType == DType::q5_k>(b, l);
}

template <DType kDType>
__global__ void dequantize_kernel(float* out, const Byte* data, std::int64_t n) {
  constexpr DTypeInfo kInfo = dtype_info(kDType);
  const std::int64_t i = std::int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n)
    out[i] = weight<kDType>(data + i / kInfo.block_size * kInfo.block_bytes,
                            int(i % kInfo.block_size));
}

using Kernel = void (*)(float*, const Byte*, std::int64_t);
template <int... kDTypes>
Kernel kernel_of(DType dtype, std::integer_sequence<int, kDTypes...>) {
  constexpr Kernel kKernels[] = {dequantize_kernel<static_cast<DType>(kDTypes)>...};
  return kKernels[static_cast<int>(dtype)];
}

}  // namespace

void dequantize(DeviceView<float, 1> out, DType dtype, const std::byte* data,
                Stream stream) {
  check_dequantize(out.shape, dtype);
  if (out.size() == 0) return;
  launch(kernel_of(dtype, std::make_integer_sequence<int, kDTypeCount>()),
         {dim3(unsigned(ceil_div(out.size(), kThreads))), dim3(kThreads), 0, stream},
         out.data, reinterpret_cast<const Byte*>(data), out.size());
}

}  // namespace lab::LAB_GPU
