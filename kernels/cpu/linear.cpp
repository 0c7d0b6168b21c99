#include "lab/kernels/linear.hpp"

#include <algorithm>
#include <vector>

#include "lab/core/parallel.hpp"
#include "lab/kernels/check.hpp"
#include "lab/kernels/dequantize.hpp"
#include "pack.hpp"
#include "simd/table.hpp"

namespace lab::cpu {

// [region definition]
void reference::linear(HostView<float, 2> y, HostView<const float, 2> x,
                       HostWeightView weights) {
  check_weights(weights.dtype, weights.rows, weights.cols);
  check_linear(y.shape, x.shape, weights.rows, weights.cols);
  std::vector<float> row(static_cast<std::size_t>(weights.cols));
  for (std::int64_t r = 0; r < weights.rows; ++r) {
    dequantize({row.data(), {weights.cols}}, weights.dtype, weights.row(r));
    for (std::int64_t t = 0; t < x.shape[0]; ++t) {
      float sum = 0;
      for (std::int64_t c = 0; c < weights.cols; ++c) sum += x[t][c] * row[std::size_t(c)];
      y[t].data[r] = sum;
    }
  }
}
// [endregion]

namespace {

constexpr std::int64_t kPanelBlocks = 8;      // 256 columns: a panel of 18 KiB stays in L1
constexpr std::int64_t kTokensPerPass = 512;  // whose activations of a panel stay in L2

std::int64_t tiles_of(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

/// Where the parts of one product lie.
struct Product {
  DType dtype;
  const std::byte* packed;
  std::int64_t rows, cols;
  float* y;        // (T, rows)
  const float* x;  // (T, cols)
  std::int64_t n_tokens;

  std::int64_t blocks() const {
    return row_units(dtype, cols) * unit_cols(dtype) / kBlockCols;
  }
  std::int64_t tile_bytes() const { return row_units(dtype, cols) * unit_bytes(dtype); }
  std::int64_t block_bytes() const {
    return unit_bytes(dtype) / (unit_cols(dtype) / kBlockCols);
  }
  float factor() const { return is_quantized(dtype) ? 0x1p-24f : 1.0f; }

  /// Weight tile `tile` from block `block` on, and its part of y from token `t` on.
  TileArguments arguments(std::int64_t tile, std::int64_t block, std::int64_t n_blocks,
                          std::int64_t t, const float* prepared) const {
    const std::int64_t row = tile * kTileRows;
    return {packed + tile * tile_bytes() + block * block_bytes(),
            prepared,
            n_blocks,
            y + t * rows + row,
            rows,
            int(std::min<std::int64_t>(kTileRows, rows - row)),
            block > 0};
  }
};

/// Weight tiles in a task: so many that it is worth one, and few enough to balance.
std::int64_t tiles_per_task(const Product& p) {
  constexpr std::int64_t kMultiplyAdds = 1 << 17;
  const std::int64_t least =
      kMultiplyAdds / (kTileRows * std::max<std::int64_t>(1, p.cols * p.n_tokens));
  return std::max({std::int64_t{1}, least, tiles_of(p.rows) / (8 * n_threads())});
}

float* scratch(std::int64_t floats) {
  thread_local Buffer buffer;
  const std::size_t bytes = std::size_t(floats) * sizeof(float);
  if (buffer.size() < bytes) buffer = Buffer(bytes);
  return buffer.as<float>();
}

/// Few tokens: each weight tile is read once and decoded in registers.
void multiply_few(const Product& p) {
  const KernelTable& k = kernels();
  const std::int64_t blocks = p.blocks();
  float* prepared = scratch(blocks * kPreparedBlock * p.n_tokens);
  k.prepare(prepared, p.x, p.cols, int(p.n_tokens), p.cols, blocks, p.factor());
  const TileKernel kernel = k.fused[int(p.dtype)][p.n_tokens - 1];
  parallel_for(tiles_of(p.rows), tiles_per_task(p),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t tile = begin; tile < end; ++tile)
                   kernel(p.arguments(tile, 0, blocks, 0, prepared));
               });
}

/// Many tokens: panel by panel, each decoded once for all tokens. The prepared activations
/// lie in the order of use: panels, then tiles of tokens.
void multiply_many(const Product& p) {
  const KernelTable& k = kernels();
  const std::int64_t blocks = p.blocks(), width = k.max_tokens;
  const std::int64_t panels = (blocks + kPanelBlocks - 1) / kPanelBlocks;
  const std::int64_t token_tiles = (p.n_tokens + width - 1) / width;
  float* prepared = scratch(blocks * kPreparedBlock * p.n_tokens);
  const auto panel_blocks = [&](std::int64_t i) {
    return std::min(kPanelBlocks, blocks - i * kPanelBlocks);
  };
  const auto prepared_at = [&](std::int64_t panel, std::int64_t t) {
    return prepared +
           kPreparedBlock * (panel * kPanelBlocks * p.n_tokens + t * panel_blocks(panel));
  };
  parallel_for(token_tiles, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin * width; t < std::min(end * width, p.n_tokens); t += width)
      for (std::int64_t i = 0; i < panels; ++i) {
        const std::int64_t col = i * kPanelBlocks * kBlockCols;
        k.prepare(prepared_at(i, t), p.x + t * p.cols + col, p.cols,
                  int(std::min(width, p.n_tokens - t)), p.cols - col, panel_blocks(i),
                  p.factor());
      }
  });
  parallel_for(
      tiles_of(p.rows), tiles_per_task(p), [&](std::int64_t begin, std::int64_t end) {
        alignas(64) std::byte panel[kPanelBlocks * kPanelBlockBytes];
        for (std::int64_t i = 0; i < panels; ++i)
          for (std::int64_t tile = begin; tile < end; ++tile) {
            TileArguments a =
                p.arguments(tile, i * kPanelBlocks, panel_blocks(i), 0, nullptr);
            if (const auto unpack = k.unpack[int(p.dtype)]) {
              unpack(panel, a.weights, a.blocks);
              a.weights = panel;
            }
            for (std::int64_t t = 0; t < p.n_tokens; t += width, a.y += width * p.rows) {
              a.x = prepared_at(i, t);
              k.panel[int(p.dtype)][std::min(width, p.n_tokens - t) - 1](a);
            }
          }
      });
}

}  // namespace

Linear::Linear(HostWeightView weights, Arena* arena)
    : dtype_(weights.dtype), rows_(weights.rows), cols_(weights.cols) {
  check_weights(dtype_, rows_, cols_);
  bytes_ = static_cast<std::size_t>(packed_bytes(dtype_, rows_, cols_));
  if (arena == nullptr) own_ = Buffer(bytes_);
  std::byte* packed = arena != nullptr ? arena->allocate(bytes_) : own_.data();
  pack(weights, packed);
  packed_ = packed;
}

void Linear::operator()(HostView<float, 2> y, HostView<const float, 2> x) const {
  check_linear(y.shape, x.shape, rows_, cols_);
  for (std::int64_t t = 0; t < x.shape[0]; t += kTokensPerPass) {
    const std::int64_t n = std::min(kTokensPerPass, x.shape[0] - t);
    const Product p{dtype_, packed_, rows_, cols_, y[t].data, x[t].data, n};
    n <= kFusedTokens ? multiply_few(p) : multiply_many(p);
  }
}

}  // namespace lab::cpu
