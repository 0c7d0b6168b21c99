#include "lab/kernels/linear.hpp"

#include <algorithm>
#include <span>
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

constexpr std::int64_t kPanelBlocks = 8;      // 256 columns: a panel per tile stays in L1
constexpr std::int64_t kTokensPerPass = 512;  // a panel's activations and, for
constexpr std::int64_t kBandsAtOnce = 4;      // so many bands, the results stay in L2

/// One matrix of a call, for the tokens of one pass. Its work is divided into bands of
/// weight tiles.
struct Product {
  const Linear* weights;
  const LinearKernels* kernels;
  std::int64_t n_tokens;
  int token_tile, band_tiles;
  const std::byte* prepared = nullptr;

  std::int64_t tiles() const { return (weights->rows() + kTileRows - 1) / kTileRows; }
  std::int64_t bands() const { return (tiles() + band_tiles - 1) / band_tiles; }
  std::int64_t units() const { return row_units(weights->dtype(), weights->cols()); }
  std::int64_t blocks() const { return units() * unit_cols(weights->dtype()) / kBlockCols; }
  std::int64_t panels() const { return (blocks() + kPanelBlocks - 1) / kPanelBlocks; }
  std::int64_t panel_blocks(std::int64_t panel) const {
    return std::min(kPanelBlocks, blocks() - panel * kPanelBlocks);
  }
  std::int64_t tile_bytes() const { return units() * unit_bytes(weights->dtype()); }
  /// A tile's weights from a panel on: a panel is 8 units, or one of a K format.
  const std::byte* at(std::int64_t tile, std::int64_t panel) const {
    const DType dtype = weights->dtype();
    return weights->packed() + tile * tile_bytes() +
           panel * kPanelBlocks * kBlockCols / unit_cols(dtype) * unit_bytes(dtype);
  }
  bool few() const { return n_tokens <= kFewTokens; }
  std::int64_t prepared_bytes() const {
    return blocks() * kernels->prepared_block * n_tokens;
  }
  /// Prepared activations lie in the order of use: panels, then tiles of tokens.
  std::int64_t prepared_at(std::int64_t panel, std::int64_t t) const {
    return kernels->prepared_block *
           (panel * kPanelBlocks * n_tokens + t * panel_blocks(panel));
  }
  std::int64_t band_results() const { return band_tiles * n_tokens * kTileRows; }
};

void prepare(const Product& p, const float* x, std::byte* prepared) {
  const std::int64_t cols = p.weights->cols();
  if (p.few())
    return p.kernels->prepare(prepared, x, cols, int(p.n_tokens), cols, p.blocks());
  const std::int64_t width = p.token_tile, tiles = (p.n_tokens + width - 1) / width;
  parallel_for(tiles, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin * width; t < std::min(end * width, p.n_tokens); t += width)
      for (std::int64_t i = 0; i < p.panels(); ++i) {
        const std::int64_t col = i * kPanelBlocks * kBlockCols;
        p.kernels->prepare(prepared + p.prepared_at(i, t), x + t * cols + col, cols,
                           int(std::min(width, p.n_tokens - t)), cols - col,
                           p.panel_blocks(i));
      }
  });
}

/// Memory that a thread keeps from call to call.
enum class Scratch { prepared, results };
template <Scratch>
std::byte* scratch(std::int64_t bytes) {
  thread_local Buffer buffer;
  if (buffer.size() < std::size_t(bytes)) buffer = Buffer(std::size_t(bytes));
  return buffer.data();
}

/// The products of `x` and each matrix. Activations are prepared once for all matrices that
/// take them in the same form.
std::vector<Product> make_products(std::span<const Linear* const> matrices,
                                   HostView<const float, 2> x, Activations activations) {
  const KernelTable& table = kernels();
  std::vector<Product> products;
  std::int64_t bytes = 0;
  for (const Linear* w : matrices) {
    const bool few = x.shape[0] <= kFewTokens;
    products.push_back({w, &table.linear[int(activations)][int(w->dtype())], x.shape[0],
                        table.tile_tokens, few ? 1 : table.band_tiles});
    bytes += products.back().prepared_bytes();
  }
  std::byte* memory = scratch<Scratch::prepared>(bytes);
  for (std::size_t i = 0; i < products.size(); ++i) {
    Product& p = products[i];
    for (std::size_t j = 0; j < i && p.prepared == nullptr; ++j)
      if (products[j].kernels->prepare == p.kernels->prepare &&
          products[j].blocks() == p.blocks())
        p.prepared = products[j].prepared;
    if (p.prepared != nullptr) continue;
    prepare(p, x.data, memory);
    p.prepared = memory;
    memory += p.prepared_bytes();
  }
  return products;
}

/// Consecutive bands of one product.
struct Bands {
  std::int64_t first, n;
};

/// Memory for the results of kBandsAtOnce bands, (bands, band_tiles, n_tokens, 16), `n`
/// times.
float* results_of(const Product& p, std::int64_t n = 1) {
  const std::int64_t floats = n * kBandsAtOnce * p.band_results();
  return reinterpret_cast<float*>(
      scratch<Scratch::results>(floats * std::int64_t{sizeof(float)}));
}

/// Few tokens: each weight tile is read once and decoded in registers.
void multiply_few(const Product& p, Bands bands, float* results) {
  for (std::int64_t i = 0; i < bands.n; ++i, results += p.band_results())
    p.kernels->few[p.n_tokens - 1](
        {p.at(bands.first + i, 0), 0, p.prepared, p.blocks(), results, 0, false});
}

/// Panel `panel` of one band, unpacked once for all tokens.
void multiply_panel(const Product& p, std::int64_t band, std::int64_t panel,
                    float* results) {
  alignas(64) std::byte unpacked[kMaxBandTiles * kPanelBlocks * kPanelBlockBytes];
  const std::int64_t first = band * p.band_tiles, blocks = p.panel_blocks(panel);
  const int tiles = int(std::min<std::int64_t>(p.band_tiles, p.tiles() - first));
  TileArguments a{p.at(first, panel),     p.tile_bytes(), nullptr, blocks, results,
                  p.n_tokens * kTileRows, panel > 0};
  if (const auto unpack = p.kernels->unpack) {
    a.weights = unpacked;
    a.next_tile = blocks * p.kernels->panel_block;
    for (int r = 0; r < tiles; ++r)
      unpack(unpacked + r * a.next_tile, p.at(first + r, panel), blocks);
  }
  // Past the last tile, the last one again; nobody reads its results.
  if (tiles < p.band_tiles) a.next_tile = 0;
  for (std::int64_t t = 0; t < p.n_tokens; t += p.token_tile) {
    a.x = p.prepared + p.prepared_at(panel, t);
    p.kernels->panel[std::min<std::int64_t>(p.token_tile, p.n_tokens - t) - 1](a);
    a.y += p.token_tile * kTileRows;
  }
}

/// Bands times all tokens. A panel's activations stay in the cache for all bands.
void multiply(const Product& p, Bands bands, float* results) {
  if (p.few()) return multiply_few(p, bands, results);
  for (std::int64_t panel = 0; panel < p.panels(); ++panel)
    for (std::int64_t i = 0; i < bands.n; ++i)
      multiply_panel(p, bands.first + i, panel, results + i * p.band_results());
}

/// Calls write(place in y, place in results, n) for the rows of each tile and token.
template <class Write>
void for_results(const Product& p, Bands bands, Write&& write) {
  const std::int64_t rows = p.weights->rows(), first = bands.first * p.band_tiles;
  for (std::int64_t i = 0; i < bands.n * p.band_tiles; ++i) {
    const std::int64_t row = (first + i) * kTileRows;
    const std::int64_t n = std::min<std::int64_t>(kTileRows, rows - row);
    for (std::int64_t t = 0; n > 0 && t < p.n_tokens; ++t)
      write(t * rows + row, (i * p.n_tokens + t) * kTileRows, n);
  }
}

/// Calls body(bands) for at most kBandsAtOnce bands from `first` to `end`.
template <class Body>
void for_bands(std::int64_t first, std::int64_t end, Body&& body) {
  for (; first < end; first += kBandsAtOnce)
    body(Bands{first, std::min(kBandsAtOnce, end - first)});
}

/// Bands in a task: so many that it is worth one, and few enough to balance.
std::int64_t bands_per_task(const Product& p, std::int64_t bands) {
  constexpr std::int64_t kMultiplyAdds = 1 << 17;
  const std::int64_t band =
      kTileRows * p.band_tiles * std::max<std::int64_t>(1, p.weights->cols() * p.n_tokens);
  return std::max({std::int64_t{1}, kMultiplyAdds / band, bands / (8 * n_threads())});
}

/// y = x W^T for those of the bands [begin, end) that exist.
void write_bands(const Product& p, std::int64_t begin, std::int64_t end, float* y) {
  float* results = results_of(p);
  for_bands(std::max<std::int64_t>(0, begin), std::min(end, p.bands()), [&](Bands bands) {
    multiply(p, bands, results);
    for_results(p, bands, [&](std::int64_t to, std::int64_t from, std::int64_t n) {
      std::copy_n(results + from, n, y + to);
    });
  });
}

/// Calls body(x, first token) for pieces of x.
template <class Body>
void for_passes(HostView<const float, 2> x, Body&& body) {
  for (std::int64_t t = 0; t < x.shape[0]; t += kTokensPerPass)
    body(x.rows(t, std::min(x.shape[0], t + kTokensPerPass)), t);
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

void Linear::operator()(HostView<float, 2> y, HostView<const float, 2> x,
                        Activations activations) const {
  const Projection output{this, y};
  linear_group({&output, 1}, x, activations);
}

void linear_group(std::span<const Projection> outputs, HostView<const float, 2> x,
                  Activations activations) {
  std::vector<const Linear*> matrices;
  for (const Projection& o : outputs) {
    check_linear(o.y.shape, x.shape, o.weights->rows(), o.weights->cols());
    matrices.push_back(o.weights);
  }
  for_passes(x, [&](HostView<const float, 2> part, std::int64_t first_token) {
    const std::vector<Product> products = make_products(matrices, part, activations);
    std::int64_t bands = 0;
    for (const Product& p : products) bands += p.bands();
    if (bands == 0) return;
    parallel_for(bands, bands_per_task(products.front(), bands),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::int64_t first = 0;
                   for (std::size_t i = 0; i < products.size(); ++i) {
                     const Product& p = products[i];
                     write_bands(p, begin - first, end - first,
                                 outputs[i].y[first_token].data);
                     first += p.bands();
                   }
                 });
  });
}

void swiglu(HostView<float, 2> y, const Linear& gate, const Linear& up,
            HostView<const float, 2> x, Activations activations) {
  check_linear(y.shape, x.shape, gate.rows(), gate.cols());
  check_linear(y.shape, x.shape, up.rows(), up.cols());
  const Linear* const matrices[] = {&gate, &up};
  for_passes(x, [&](HostView<const float, 2> part, std::int64_t first_token) {
    const std::vector<Product> products = make_products(matrices, part, activations);
    const Product &g = products[0], &u = products[1];
    float* out = y[first_token].data;
    parallel_for(
        g.bands(), bands_per_task(g, g.bands()), [&](std::int64_t begin, std::int64_t end) {
          float* gates = results_of(g, 2);
          float* ups = gates + kBandsAtOnce * g.band_results();
          for_bands(begin, end, [&](Bands bands) {
            multiply(g, bands, gates);
            multiply(u, bands, ups);
            for_results(g, bands, [&](std::int64_t to, std::int64_t from, std::int64_t n) {
              kernels().silu_mul(out + to, gates + from, ups + from, n);
            });
          });
        });
  });
}

}  // namespace lab::cpu
