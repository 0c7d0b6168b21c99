/// @file
/// The number formats a weight can be stored in.
#pragma once

#include <cstdint>
#include <string_view>

namespace lab {

/// Storage formats. Block formats hold `block_size` weights of one row in `block_bytes`
/// bytes. Layouts: kernels/cpu/dequantize.cpp, after the GGUF specification.
enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,  // 32 weights a block
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,    // 256 weights a block
  iq4_nl,  // 32 weights a block
};
inline constexpr int kDTypeCount = 14;

struct DTypeInfo {
  std::string_view name;     ///< as GGUF tools write it: "F32", "Q4_0", "Q6_K"
  std::int64_t block_size;   ///< weights in a block
  std::int64_t block_bytes;  ///< bytes of a block
};

inline constexpr DTypeInfo kDTypeTable[kDTypeCount] = {
    {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},     {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q8_0", 32, 34},
    {"Q2_K", 256, 84},  {"Q3_K", 256, 110}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176},
    {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18}};

/// @return the row of the format table for `dtype`
constexpr const DTypeInfo& dtype_info(DType dtype) {
  return kDTypeTable[static_cast<int>(dtype)];
}
/// @return "F32", "Q4_0", ...
constexpr std::string_view name(DType dtype) { return dtype_info(dtype).name; }

/// @return bytes of `n` weights of one row; n must be a multiple of the block size
constexpr std::int64_t row_bytes(DType dtype, std::int64_t n) {
  return n / dtype_info(dtype).block_size * dtype_info(dtype).block_bytes;
}
/// @return whether weights are stored in blocks of codes with scales
constexpr bool is_quantized(DType dtype) { return dtype >= DType::q4_0; }

}  // namespace lab
