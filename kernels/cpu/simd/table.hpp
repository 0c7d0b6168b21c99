/// @file
/// The kernels that are compiled once per instruction set, as one table of functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/core/dtype.hpp"
#include "lab/core/half.hpp"

namespace lab::cpu {

/// What one call of an attention kernel works on: the queries of tokens [first, end) and of
/// all heads that share kv head `group`.
template <class KV>
struct AttentionTask {
  float* out;      // (T, H, Dh)
  const float* q;  // (T, H, Dh)
  const KV* k;     // (S, K, Dh)
  const KV* v;     // (S, K, Dh)
  std::int64_t n_tokens, n_heads, head_dim, kv_len, n_kv_heads;
  float scale;
  std::int64_t first, end, group;

  std::int64_t heads_per_group() const { return n_heads / n_kv_heads; }
  std::int64_t n_rows() const { return (end - first) * heads_per_group(); }
  /// The keys that token t sees.
  std::int64_t visible(std::int64_t t) const { return kv_len - n_tokens + t + 1; }
  /// Floats from one row of scores to the next: whole vectors.
  std::int64_t score_stride() const { return (visible(end - 1) + 15) / 16 * 16; }
  /// Floats of scratch memory: the scores of every row and their sums; 16 keys, transposed.
  std::int64_t scratch_size() const {
    return n_rows() * (score_stride() + 1) + 16 * ((head_dim + 15) / 16 * 16);
  }
};

/// Sixteen rows of weights times a tile of tokens: adds to y, or sets it.
struct TileArguments {
  const std::byte* weights;  // `blocks` blocks of 32 columns of one weight tile
  const float* x;            // prepared activations of the same columns
  std::int64_t blocks;
  float* y;  // (tokens, >= 16 rows)
  std::int64_t y_stride;
  int rows;         // of the 16, how many exist
  bool accumulate;  // whether y already holds the sum over earlier columns
};
using TileKernel = void (*)(const TileArguments&);

inline constexpr int kFusedTokens = 4;  // up to here, weights are decoded in registers
inline constexpr int kMaxTokens = 8;  // room in the table; an instruction set may use fewer
inline constexpr int kPreparedBlock = 35;  // floats of 32 prepared columns of a token
inline constexpr int kPanelBlockBytes = 36 * 64;

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

  void (*attention_f32)(const AttentionTask<float>&, float* scratch);
  void (*attention_f16)(const AttentionTask<Half>&, float* scratch);
  void (*attention_bf16)(const AttentionTask<BFloat16>&, float* scratch);

  // Linear: see linear.inc.
  int max_tokens;  // of a token tile
  void (*prepare)(float* out, const float* x, std::int64_t x_stride, int tokens,
                  std::int64_t cols, std::int64_t blocks, float factor);
  TileKernel fused[kDTypeCount][kFusedTokens];
  void (*unpack[kDTypeCount])(std::byte* panel, const std::byte* weights,
                              std::int64_t blocks);
  TileKernel panel[kDTypeCount][kMaxTokens];

  // The machine's peaks.
  float (*read)(const float* data, std::int64_t n);
  std::int64_t (*multiply_add)(std::int64_t n, float* sink);  // returns the operations done
};

namespace avx512 {
extern const KernelTable kKernels;
}
namespace avx2 {
extern const KernelTable kKernels;
}
namespace plain {
extern const KernelTable kKernels;
}

/// @return the kernels of the instruction set in use
const KernelTable& kernels();

}  // namespace lab::cpu
