#include "planes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "../cpu/blocks.hpp"
#include "lab/core/half.hpp"
#include "lab/core/parallel.hpp"

namespace lab {
namespace {

using Byte = std::uint8_t;
namespace blocks = cpu::blocks;

/// What the planes of a format hold.
struct PlaneFormat {
  int code_bits, scale_bytes, super_bytes;
};
constexpr PlaneFormat kFormats[kDTypeCount] = {
    {32, 0, 0}, {16, 0, 0}, {16, 0, 0},             // F32, F16, BF16
    {4, 2, 0},  {4, 4, 0},  {5, 2, 0},  {5, 4, 0},  // Q4_0, Q4_1, Q5_0, Q5_1
    {8, 2, 0},  {2, 2, 4},  {3, 2, 2},  {4, 2, 4},  // Q8_0, Q2_K, Q3_K, Q4_K
    {5, 2, 4},  {6, 2, 2},  {4, 2, 0}};             // Q5_K, Q6_K, IQ4_NL

const PlaneFormat& format_of(DType dtype) { return kFormats[static_cast<int>(dtype)]; }
bool has_row_factor(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

std::int64_t code_bytes(int bits) { return bits < 4 ? 8 : bits < 8 ? 16 : 4 * bits; }
std::int64_t extra_bytes(int bits) {
  return bits == 3 || bits == 5 ? 4 : bits == 6 ? 8 : 0;
}

/// A place in each plane that moves on as it is written.
struct Writer {
  Byte* at[kPlanes];

  void copy(PlaneName plane, const Byte* from, std::int64_t n) {
    std::copy_n(from, n, at[plane]);  // from is null in a matrix without rows
    at[plane] += n;
  }
  template <class T>
  void put(PlaneName plane, T v) {
    std::memcpy(at[plane], &v, sizeof v);
    at[plane] += sizeof v;
  }

  /// Byte i of a word takes `bits` bits from `shift` on of code[i], code[4 + i], ...
  void put_word(PlaneName plane, const Byte* code, int bits, int shift) {
    std::uint32_t word = 0;
    for (int n = 0; n < 8 / bits; ++n)
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t part =
            (unsigned(code[4 * n + i]) >> shift) & ((1u << bits) - 1);
        word |= part << (8 * i + bits * n);
      }
    put(plane, word);
  }
  void put_codes(const Byte* code, int bits) {
    const int low = bits < 4 ? 2 : bits < 8 ? 4 : 8;
    for (int c = 0; c < 32; c += 32 / low) put_word(kCodes, code + c, low, 0);
    const int high = bits - low;
    for (int c = 0; high > 0 && c < 32; c += 32 / high)
      put_word(kExtra, code + c, high, low);
  }
};

/// The 4-bit and 5-bit codes of a block of 32; `fifth` is its qh, or 0.
void nibble_codes(const Byte* qs, std::uint32_t fifth, Byte* code) {
  for (int j = 0; j < 16; ++j) {
    code[j] = Byte((qs[j] & 15u) | ((fifth >> j) & 1u) << 4);
    code[j + 16] = Byte((qs[j] >> 4) | ((fifth >> (j + 16)) & 1u) << 4);
  }
}

/// A block of 32 weights: `heads` f16 values, a fifth bit or not, then the codes.
void pack_block(DType dtype, const Byte* b, Writer& out) {
  const PlaneFormat& f = format_of(dtype);
  Byte code[32];
  out.copy(kScales, b, f.scale_bytes);
  b += f.scale_bytes;
  if (f.code_bits == 8)
    for (int j = 0; j < 32; ++j) code[j] = Byte(b[j] ^ 0x80u);
  else if (f.code_bits == 5)
    nibble_codes(b + 4, blocks::read<std::uint32_t>(b), code);
  else
    nibble_codes(b, 0, code);
  out.put_codes(code, f.code_bits);
}

/// Codes and scales of part `i` of 8 of a K block.
void pack_k_part(DType dtype, const Byte* b, int i, Writer& out) {
  Byte code[32];
  switch (dtype) {
    case DType::q2_k:
      out.copy(kScales, b + 2 * i, 2);
      blocks::q2_k_codes(b, i, code);
      break;
    case DType::q3_k:
      for (int half = 0; half < 2; ++half)
        out.put(kScales, std::int8_t(blocks::q3_k_scale(b, 2 * i + half)));
      blocks::q3_k_codes(b, i, code);
      break;
    case DType::q6_k:
      out.copy(kScales, b + 192 + 2 * i, 2);
      blocks::q6_k_codes(b, i, code);
      break;
    default:
      out.put(kScales, blocks::q45_k_scale(b + 4, i));
      dtype == DType::q5_k ? blocks::q45_k_codes<true>(b, i, code)
                           : blocks::q45_k_codes<false>(b, i, code);
  }
  out.put_codes(code, format_of(dtype).code_bits);
}

void pack_k_block(DType dtype, const Byte* b, Writer& out) {
  const int super_at = dtype == DType::q2_k   ? 80
                       : dtype == DType::q3_k ? 108
                       : dtype == DType::q6_k ? 208
                                              : 0;
  out.copy(kSuper, b + super_at, format_of(dtype).super_bytes);
  for (int i = 0; i < 8; ++i) pack_k_part(dtype, b, i, out);
}

/// 2^k with the largest magnitude times 2^k in [2^14, 2^15), as far as 2^k is a normal
/// float.
float row_factor(const Byte* row, DType dtype, std::int64_t cols) {
  float largest = 0;
  for (std::int64_t c = 0; c < cols; ++c) {
    const float w = dtype == DType::f32
                        ? blocks::read<float>(row + 4 * c)
                        : to_float(BFloat16{blocks::read<std::uint16_t>(row + 2 * c)});
    largest = std::max(largest, std::abs(w));  // NaN is never the larger
  }
  if (largest == 0) return 1;
  return std::ldexp(1.0f, std::clamp(14 - std::ilogb(largest), -126, 126));
}

void pack_row(HostWeightView w, std::int64_t r, const PlaneLayout& layout, Writer out) {
  const Byte* row = reinterpret_cast<const Byte*>(w.row(r));
  if (!is_quantized(w.dtype)) {
    const std::int64_t bytes = w.row_stride();
    if (has_row_factor(w.dtype)) out.put(kSuper, row_factor(row, w.dtype, w.cols));
    Byte* padding = out.at[kCodes] + bytes;
    out.copy(kCodes, row, bytes);
    std::memset(padding, 0, std::size_t(layout.row_bytes[kCodes] - bytes));
    return;
  }
  const DTypeInfo& info = dtype_info(w.dtype);
  for (std::int64_t c = 0; c < w.cols; c += info.block_size, row += info.block_bytes)
    info.block_size == 256 ? pack_k_block(w.dtype, row, out)
                           : pack_block(w.dtype, row, out);
}

}  // namespace

PlaneLayout plane_layout(DType dtype, std::int64_t rows, std::int64_t cols) {
  const PlaneFormat& f = format_of(dtype);
  PlaneLayout layout;
  layout.blocks = (cols + kPlaneBlock - 1) / kPlaneBlock;
  layout.row_bytes[kCodes] = layout.blocks * code_bytes(f.code_bits);
  layout.row_bytes[kExtra] = layout.blocks * extra_bytes(f.code_bits);
  layout.row_bytes[kScales] = layout.blocks * f.scale_bytes;
  layout.row_bytes[kSuper] = has_row_factor(dtype) ? std::int64_t(sizeof(float))
                                                   : layout.blocks / 8 * f.super_bytes;
  for (int p = 0; p < kPlanes; ++p) {
    layout.offset[p] = layout.bytes;
    layout.bytes += (rows * layout.row_bytes[p] + 255) / 256 * 256;
  }
  return layout;
}

void pack_planes(HostWeightView w, std::int64_t first, std::int64_t n_rows,
                 std::byte* const (&planes)[kPlanes]) {
  const PlaneLayout layout = plane_layout(w.dtype, w.rows, w.cols);
  parallel_for(n_rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      Writer out;
      for (int p = 0; p < kPlanes; ++p)
        out.at[p] = reinterpret_cast<Byte*>(planes[p]) + r * layout.row_bytes[p];
      pack_row(w, first + r, layout, out);
    }
  });
}

}  // namespace lab
