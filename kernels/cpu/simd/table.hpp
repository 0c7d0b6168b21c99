/// @file
/// The kernels that are compiled once per instruction set, as one table of functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/core/dtype.hpp"
#include "lab/core/half.hpp"

namespace lab::cpu {

/// Keys are taken in chunks of this many positions, counted from the first: a query's
/// result is merged from the same chunks in the same order in every call, on any number of
/// threads.
inline constexpr std::int64_t kChunkKeys = 128;
inline constexpr std::int64_t kAttentionRows = 48;  // whose scores of a chunk stay in L1

/// What an attention kernel works on: the queries of tokens [first, end) and of all heads
/// that share kv head `group`. Rows are (token, head), tokens first, so that the heads of a
/// group share what is loaded of keys and values.
template <class KV>
struct AttentionTask {
  float* out;      // (T, H, Dh)
  const float* q;  // (T, H, Dh)
  const KV* k;     // (S, K, Dh), or blocks of it
  const KV* v;     // (S, K, Dh), or blocks of it
  std::int64_t n_tokens, n_heads, head_dim, kv_len, n_kv_heads;
  float scale;
  // Position s lies in row s % block_size of block block_table[s / block_size]; without a
  // table, in row s.
  const std::int32_t* block_table = nullptr;
  std::int64_t block_size = 0;
  std::int64_t first = 0, end = 0, group = 0;

  std::int64_t heads_per_group() const { return n_heads / n_kv_heads; }
  std::int64_t n_rows() const { return (end - first) * heads_per_group(); }
  /// The keys that token t sees, and those that the last token sees.
  std::int64_t visible(std::int64_t t) const { return kv_len - n_tokens + t + 1; }
  std::int64_t n_chunks() const { return (visible(end - 1) + kChunkKeys - 1) / kChunkKeys; }
  /// The first row that sees a key of a chunk; all after it do.
  std::int64_t first_row(std::int64_t chunk) const {
    const std::int64_t t = chunk * kChunkKeys - (kv_len - n_tokens);
    return t > first ? (t - first) * heads_per_group() : 0;
  }
  std::int64_t padded_dim() const { return (head_dim + 15) / 16 * 16; }
  /// Where the group's head of positions [first_key, first_key + n) begins, in elements
  /// from k and from v. A block is looked up once for all of its rows.
  void offsets(std::int64_t* to, std::int64_t first_key, std::int64_t n) const {
    const std::int64_t stride = n_kv_heads * head_dim;
    for (std::int64_t i = 0; i < n;) {
      const std::int64_t key = first_key + i;
      std::int64_t row = key, run = n - i;
      if (block_table != nullptr) {
        const std::int64_t in_block = key % block_size;
        row = block_table[key / block_size] * block_size + in_block;
        run = run < block_size - in_block ? run : block_size - in_block;
      }
      for (const std::int64_t end_of_run = i + run; i < end_of_run; ++i, ++row)
        to[i] = row * stride + group * head_dim;
    }
  }
  /// Floats of scratch memory of one chunk: keys, transposed; values; scores.
  std::int64_t scratch_size() const {
    return 2 * kChunkKeys * padded_dim() + kAttentionRows * kChunkKeys;
  }
};

/// Attention of some rows to some keys, before the division: for each row the largest
/// score, the sum of weights exp(score - largest) and the values mixed with them.
struct PartialAttention {
  float* largest;  // (rows)
  float* sum;      // (rows)
  float* mixed;    // (rows, padded_dim)

  /// @return floats for `rows` rows
  static std::int64_t size(std::int64_t rows, std::int64_t padded_dim) {
    return (rows + 15) / 16 * 16 * (padded_dim + 2);
  }
  PartialAttention(float* memory, std::int64_t rows, std::int64_t padded_dim)
      : largest(memory + (rows + 15) / 16 * 16 * padded_dim),
        sum(largest + (rows + 15) / 16 * 16),
        mixed(memory) {}
};

/// The attention kernels for one type of keys and values.
template <class KV>
struct AttentionKernels {
  /// One chunk of keys, for the rows from task.first_row(chunk) on.
  void (*chunk)(const AttentionTask<KV>& task, std::int64_t chunk,
                const PartialAttention& result, float* scratch);
  /// out = mixed / sum
  void (*finish)(const AttentionTask<KV>& task, const PartialAttention& whole);
};

/// One or more tiles of weights, 16 rows each, times a tile of tokens: adds to y, or sets
/// it.
struct TileArguments {
  const std::byte* weights;  // `blocks` blocks of 32 columns of the first weight tile
  std::int64_t next_tile;    // bytes to the same blocks of the next
  const std::byte* x;        // prepared activations of the same columns
  std::int64_t blocks;
  float* y;             // (tiles, >= tokens, 16)
  std::int64_t y_tile;  // floats from a tile's results to those of the next
  bool accumulate;      // whether y already holds the sum over earlier columns
};
using TileKernel = void (*)(const TileArguments&);

inline constexpr int kFewTokens = 4;  // up to here, weights are decoded in registers
inline constexpr int kMaxTokens = 8;  // room in the table; an instruction set may use fewer
inline constexpr int kMaxBandTiles = 2;
inline constexpr int kPreparedFloats = 35;  // of 32 columns of a token, see linear.inc
inline constexpr int kPreparedWords = 12;   // the same in linear_int8.inc
inline constexpr int kPanelBlockBytes = 36 * 64;

/// The linear layer for one format and one kind of activations.
struct LinearKernels {
  /// Activations of a tile of tokens, x (tokens, cols) with a stride, in blocks of 32
  /// columns; columns that do not exist are zero. Formats with the same function share what
  /// it writes.
  void (*prepare)(std::byte* out, const float* x, std::int64_t x_stride, int tokens,
                  std::int64_t cols, std::int64_t blocks);
  std::int64_t prepared_block;   // bytes of a block of a token
  TileKernel few[kFewTokens];    // one packed tile times 1, 2, ... tokens
  TileKernel panel[kMaxTokens];  // `band_tiles` unpacked tiles times 1, 2, ... tokens
  std::int64_t panel_block;      // bytes of an unpacked block
  /// Null if `panel` reads packed tiles.
  void (*unpack)(std::byte* panel, const std::byte* weights, std::int64_t blocks);
};

struct KernelTable {
  const char* name;

  // n elements, or one row of n elements.
  void (*add)(float* out, const float* a, const float* b, std::int64_t n);
  void (*silu_mul)(float* out, const float* gate, const float* up, std::int64_t n);
  void (*to_half)(Half* out, const float* in, std::int64_t n);
  void (*to_bfloat16)(BFloat16* out, const float* in, std::int64_t n);
  void (*rms_norm)(float* out, const float* x, const float* weight, std::int64_t n,
                   float eps);
  void (*softmax)(float* out, const float* x, std::int64_t n);
  std::int64_t (*argmax)(const float* x, std::int64_t n);  // -1 if there is a NaN
  void (*rope_interleaved)(float* x, const float* cos, const float* sin,
                           std::int64_t pairs);
  void (*rope_half_split)(float* x, const float* cos, const float* sin, std::int64_t pairs);

  AttentionKernels<float> attention_f32;
  AttentionKernels<Half> attention_f16;
  AttentionKernels<BFloat16> attention_bf16;
  /// Adds `part` to `whole`, for rows [first, end).
  void (*merge_attention)(const PartialAttention& whole, const PartialAttention& part,
                          std::int64_t first, std::int64_t end, std::int64_t padded_dim);

  int tile_tokens;                       // of a tile of tokens in `panel`
  int band_tiles;                        // weight tiles that one call of `panel` takes
  LinearKernels linear[2][kDTypeCount];  // by Activations, DType

  // The machine's peaks.
  float (*read)(const float* data, std::int64_t n);
  std::int64_t (*multiply_add)(std::int64_t n, float* sink);  // returns the operations done
};

namespace avx512_vnni {
/// As avx512, but for 8-bit dot products.
const KernelTable& kernels();
}  // namespace avx512_vnni
namespace avx512 {
extern const KernelTable kKernels;
}
namespace avx2 {
extern const KernelTable kKernels;
}
namespace neon {
extern const KernelTable kKernels;
}
namespace plain {
extern const KernelTable kKernels;
}

/// @return the kernels of the instruction set in use
const KernelTable& kernels();

}  // namespace lab::cpu
