#include "pack.hpp"

#include <algorithm>
#include <cstring>

#include "blocks.hpp"
#include "lab/core/parallel.hpp"

namespace lab::cpu {
namespace {

using Byte = std::uint8_t;

/// Where row r of a tile writes: each call puts one value into the next array of 16.
struct Lane {
  Byte* at;
  int row;

  template <class T>
  void put(T v) {
    std::memcpy(at + sizeof v * std::size_t(row), &v, sizeof v);
    at += sizeof v * kTileRows;
  }
  template <class T>
  void copy(const Byte* from, int n) {
    for (int i = 0; i < n; ++i) put(blocks::read<T>(from + sizeof(T) * std::size_t(i)));
  }
  void put_nibbles(const Byte* code) {
    for (int u = 0; u < 4; ++u) {
      std::uint32_t plane = 0;
      for (int i = 0; i < 4; ++i)
        plane |= ((code[4 * u + i] & 15u) | (code[16 + 4 * u + i] & 15u) << 4) << (8 * i);
      put(plane);
    }
  }
  void put_pairs(const Byte* code, int shift) {
    for (int half = 0; half < 2; ++half) {
      std::uint32_t plane = 0;
      for (int n = 0; n < 4; ++n)
        for (int i = 0; i < 4; ++i)
          plane |= ((code[16 * half + 4 * n + i] >> shift) & 3u) << (8 * i + 2 * n);
      put(plane);
    }
  }
  void put_fifth(const Byte* code, int shift) {
    std::uint32_t plane = 0;
    for (int n = 0; n < 8; ++n)
      for (int i = 0; i < 4; ++i) plane |= ((code[4 * n + i] >> shift) & 1u) << (8 * i + n);
    put(plane);
  }
};

/// Bit 4n + i moves to bit 8i + n: a transposition of 8 x 4 bits, as four swaps of pieces.
std::uint32_t transpose_bits(std::uint32_t v) {
  const auto swap = [&v](std::uint32_t mask, int distance) {
    const std::uint32_t t = (v ^ (v >> distance)) & mask;
    v ^= t ^ (t << distance);
  };
  swap(0x22222222u, 1);
  swap(0x0a0a0a0au, 3);
  swap(0x00cc00ccu, 6);
  swap(0x0000f0f0u, 12);
  return v;
}

/// A block of 32 weights: `heads` f16 values, a fifth bit or not, then `words` x 4 bytes.
template <int kHeads, bool kFifth, int kWords>
void pack_block(const Byte* b, std::int64_t, Lane lane) {
  lane.copy<std::uint16_t>(b, kHeads);
  b += 2 * kHeads;
  if (kFifth) {
    lane.put(transpose_bits(blocks::read<std::uint32_t>(b)));
    b += 4;
  }
  lane.copy<std::uint32_t>(b, kWords);
}

/// Up to 32 columns of T; the rest was set to zero.
template <class T>
void pack_float(const Byte* b, std::int64_t cols, Lane lane) {
  lane.copy<T>(b, int(cols));
}
void pack_bf16(const Byte* b, std::int64_t cols, Lane lane) {
  lane.copy<std::uint32_t>(b, int(cols / 2));
  if (cols % 2) lane.put(std::uint32_t{blocks::read<std::uint16_t>(b + 2 * (cols - 1))});
}

void pack_q2_k(const Byte* b, std::int64_t, Lane lane) {
  lane.copy<std::uint16_t>(b + 80, 2);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    const Byte* s = b + 2 * block;
    for (int half = 0; half < 2; ++half) lane.put(Byte(s[half] & 15u));
    for (int half = 0; half < 2; ++half) lane.put(Byte(s[half] >> 4));
    blocks::q2_k_codes(b, block, code);
    lane.put_pairs(code, 0);
  }
}
void pack_q3_k(const Byte* b, std::int64_t, Lane lane) {
  lane.copy<std::uint16_t>(b + 108, 1);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    for (int half = 0; half < 2; ++half)
      lane.put(std::int8_t(blocks::q3_k_scale(b, 2 * block + half)));
    blocks::q3_k_codes(b, block, code);
    lane.put_pairs(code, 0);
    lane.put_fifth(code, 2);
  }
}
template <bool kFifth>
void pack_q45_k(const Byte* b, std::int64_t, Lane lane) {
  lane.copy<std::uint16_t>(b, 2);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    const auto [scale, min] = blocks::q45_k_scale(b + 4, block);
    lane.put(scale);
    lane.put(min);
    blocks::q45_k_codes<kFifth>(b, block, code);
    lane.put_nibbles(code);
    if (kFifth) lane.put_fifth(code, 4);
  }
}
void pack_q6_k(const Byte* b, std::int64_t, Lane lane) {
  lane.copy<std::uint16_t>(b + 208, 1);
  Byte code[32];
  for (int block = 0; block < 8; ++block) {
    lane.copy<Byte>(b + 192 + 2 * block, 2);
    blocks::q6_k_codes(b, block, code);
    lane.put_nibbles(code);
    lane.put_pairs(code, 4);
  }
}

/// One unit of one row: `cols` columns from `block`.
using Pack = void (*)(const Byte* block, std::int64_t cols, Lane lane);
constexpr Pack kPack[kDTypeCount] = {pack_float<std::uint32_t>,
                                     pack_float<std::uint16_t>,
                                     pack_bf16,
                                     pack_block<1, false, 4>,
                                     pack_block<2, false, 4>,
                                     pack_block<1, true, 4>,
                                     pack_block<2, true, 4>,
                                     pack_block<1, false, 8>,
                                     pack_q2_k,
                                     pack_q3_k,
                                     pack_q45_k<false>,
                                     pack_q45_k<true>,
                                     pack_q6_k,
                                     pack_block<1, false, 4>};

void pack_tile(HostWeightView w, std::int64_t tile, Byte* out) {
  const Pack pack_unit = kPack[static_cast<int>(w.dtype)];
  const std::int64_t units = row_units(w.dtype, w.cols), per_unit = unit_cols(w.dtype);
  const int rows = int(std::min<std::int64_t>(kTileRows, w.rows - tile * kTileRows));
  const bool partial = rows < kTileRows || w.cols < units * per_unit;
  if (partial) std::memset(out, 0, std::size_t(units * unit_bytes(w.dtype)));
  for (std::int64_t u = 0; u < units; ++u, out += unit_bytes(w.dtype)) {
    const std::int64_t cols = std::min(per_unit, w.cols - u * per_unit);
    for (int r = 0; r < rows && cols > 0; ++r) {
      const std::byte* from =
          w.row(tile * kTileRows + r) + row_bytes(w.dtype, u * per_unit);
      pack_unit(reinterpret_cast<const Byte*>(from), cols, {out, r});
    }
  }
}

}  // namespace

void pack(HostWeightView w, std::byte* packed) {
  const std::int64_t tiles = (w.rows + kTileRows - 1) / kTileRows;
  const std::int64_t tile_bytes = row_units(w.dtype, w.cols) * unit_bytes(w.dtype);
  parallel_for(tiles, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      pack_tile(w, i, reinterpret_cast<Byte*>(packed) + i * tile_bytes);
  });
}

}  // namespace lab::cpu
