//! # Flash attention
//! @builds-on 05_paged_attention
//! @time 90
//! @exercise 06_flash_attention
//! @summary Exact attention that never stores its matrix: memory linear in the text, and less of it moved
//! @uses kernels/cpu/flash_attention.cpp kernels/cpu/flash_attention_backward.cpp kernels/cpu/naive_attention.cpp
//!
//! Attention compares every token with every earlier one. Written as three lines of algebra it
//! makes a matrix of $N \times N$ scores, and for a long text that matrix is larger than
//! everything else together. It need not exist. This chapter computes the same numbers from
//! small tiles that fit in fast memory, and finds that moving fewer bytes also makes it faster.
//!
//! **You will learn to**
//! - compute a softmax in one pass over its scores, a few at a time;
//! - merge attention over two sets of keys into that over both, from two outputs and two numbers;
//! - count the bytes that attention moves, with and without its matrix, and check the formula;
//! - differentiate attention without having kept its weights.

//! @fold Includes
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/core/rng.hpp"
#include "lab/core/run.hpp"
#include "lab/core/timing.hpp"
#include "lab/decode/generate.hpp"
#include "lab/decode/no_kv_cache.hpp"
#include "lab/device/device.hpp"
#include "lab/kernels/flash_attention.hpp"

using namespace lab;

//! @fold Operands and small helpers
/// One problem: T queries, the last of a text of S keys.
struct Problem {
  Problem(std::int64_t n_queries, std::int64_t n_keys, std::int64_t n_heads,
          std::int64_t n_kv_heads, std::int64_t head_dim)
      : T(n_queries), S(n_keys), H(n_heads), K(n_kv_heads), Dh(head_dim) {
    Rng rng(6);
    for (auto [x, n] : {std::pair{&q, T * H}, {&k, S * K}, {&v, S * K}, {&dout, T * H}})
      for (std::int64_t i = 0; i < n * Dh; ++i) x->push_back(float(rng.normal()));
    out.resize(q.size());
    lse.resize(std::size_t(T * H));
    query_starts = {0, std::int32_t(T)};
    key_starts = {0, std::int32_t(S)};
  }
  HostView<const float, 3> of_queries(const std::vector<float>& x) const {
    return {x.data(), {T, H, Dh}};
  }
  HostView<const float, 3> of_keys(const std::vector<float>& x) const {
    return {x.data(), {S, K, Dh}};
  }
  RaggedBatch<Space::host> batch() const {
    return {{query_starts.data(), {2}}, {key_starts.data(), {2}}, T};
  }
  float scale() const { return 1 / std::sqrt(float(Dh)); }
  void flash() {
    cpu::flash_attention<float>({out.data(), {T, H, Dh}}, {lse.data(), {T, H}},
                                of_queries(q), of_keys(k), of_keys(v), batch(), scale(),
                                AttentionMask::causal);
  }
  /// @return bytes of the matrix
  std::int64_t naive() {
    return cpu::naive_attention({out.data(), {T, H, Dh}}, of_queries(q), of_keys(k),
                                of_keys(v), batch(), scale(), AttentionMask::causal);
  }
  void reference() {
    cpu::reference::flash_attention<float>({out.data(), {T, H, Dh}}, {lse.data(), {T, H}},
                                           of_queries(q), of_keys(k), of_keys(v), batch(),
                                           scale(), AttentionMask::causal);
  }

  std::int64_t T, S, H, K, Dh;
  std::vector<float> q, k, v, dout, out, lse;
  std::vector<std::int32_t> query_starts, key_starts;
};

/// Raises `worst` to d; a NaN stays.
void keep_worst(double& worst, double d) {
  if (std::isnan(d) || d > worst) worst = d;
}

/// The largest difference; NaN if there is one.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // two infinities of one sign, too
    keep_worst(worst, std::abs(double(a[i]) - double(b[i])));
  }
  return worst;
}

//! ## A softmax that does not wait
//!
//! For one query with scores $x_1, x_2, \ldots$ the output is a weighted mean of the values,
//!
//! $$ o = \frac{\sum_s e^{x_s} v_s}{\sum_s e^{x_s}} . $$
//!
//! Nobody computes it like this: $e^{90}$ is more than f32 can hold. Numerator and denominator are
//! divided by $e^m$ with $m = \max_s x_s$, so that the largest term is 1. That seems to need all
//! scores before the first one can be used. It does not.
//!
//! **Step 1.** Take any $m$ at all and keep two sums, $\ell = \sum_s e^{x_s - m}$ and
//! $a = \sum_s e^{x_s - m} v_s$. Their quotient $a / \ell$ does not depend on $m$.
//!
//! **Step 2.** Let $m$ be the largest score *so far*. A new score $x$ with a value $v$ may be larger.
//! Then $m' = \max(m, x)$, and what is there is measured with the old $m$. One factor repairs it,
//! since $e^{x_s - m'} = e^{x_s - m} \cdot e^{m - m'}$:
//!
//! $$ \ell' = \ell \, e^{m - m'} + e^{x - m'}, \qquad a' = a \, e^{m - m'} + e^{x - m'} v . $$
//!
//! **Step 3.** Divide once, at the end: $o = a / \ell$. And keep one number more, the *log-sum-exp*
//! $\mathrm{lse} = m + \log \ell = \log \sum_s e^{x_s}$. It does not depend on $m$ either, and will be
//! needed twice.

/// What one query keeps of the keys that it has met.
class OnlineSoftmax {
 public:
  explicit OnlineSoftmax(std::int64_t head_dim) : mixed_(std::size_t(head_dim)) {}

  void add(float score, const float* value) {
    const float m = std::max(largest_, score);
    if (m == -INFINITY) return;  // -inf - -inf is NaN: nothing seen yet
    const float old = std::exp(largest_ - m), weight = std::exp(score - m);
    sum_ = sum_ * old + weight;
    for (std::size_t d = 0; d < mixed_.size(); ++d)
      mixed_[d] = mixed_[d] * old + weight * value[d];
    largest_ = m;
  }
  /// Writes the output. @return the log-sum-exp
  float finish(float* out) const {
    for (std::size_t d = 0; d < mixed_.size(); ++d)
      out[d] = sum_ > 0 ? mixed_[d] / sum_ : 0;
    return largest_ + std::log(sum_);
  }
  float largest() const { return largest_; }
  float sum() const { return sum_; }

 private:
  float largest_ = -INFINITY, sum_ = 0;
  std::vector<float> mixed_;
};

void show_online(Run& run) {
  run.section("online");
  const std::vector<float> scores{1, 3, 2, 7, -4}, values{10, 20, 30, 40, 50};
  OnlineSoftmax softmax(1);
  run.print("{:>7} {:>7} {:>9} {:>9} {:>9}\n", "score", "m", "l", "output", "lse");
  for (std::size_t i = 0; i < scores.size(); ++i) {
    softmax.add(scores[i], &values[i]);
    float out = 0;
    const float lse = softmax.finish(&out);
    run.print("{:>7} {:>7} {:>9.4f} {:>9.4f} {:>9.4f}\n", scores[i], softmax.largest(),
              softmax.sum(), out, lse);
  }
  double worst = 0;
  for (const float offset : {0.0f, 1e4f, -1e4f}) {
    OnlineSoftmax shifted(1);
    double sum = 0, mixed = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      shifted.add(scores[i] + offset, &values[i]);
      sum += std::exp(double(scores[i]));
      mixed += std::exp(double(scores[i])) * double(values[i]);
    }
    float out = 0;
    shifted.finish(&out);
    keep_worst(worst, std::abs(double(out) - mixed / sum));
  }
  run.check(worst <= 1e-4,
            "one pass is two passes, also near "
            "10,000 and -10,000");
}

//! @output online
//!
//! Watch $\ell$ in the fourth line: the score 7 arrives, everything before it shrinks by
//! $e^{3-7}$, and the sum is nearly 1 again.
//!
//! @predict What would go wrong if $m$ started at 0 instead of $-\infty$?
//! @answer Nothing, as long as some score is above about -87. If all are far below 0, every weight
//! is $e^{x-0} = 0$ in f32, and the output 0 / 0. The bug waits for unusual inputs.

//! ## Tiles
//!
//! A key that has been brought from memory should serve many queries before it goes. So take a
//! block of $B_r$ queries, keep the state of each, and go over the keys in tiles of $B_c$:
//!
//! ```
//!             4 tiles of B_c keys
//!           +-----+-----+-----+-----+
//! 3 blocks  | all | (m) |     |     |
//! of B_r    +-----+-----+-----+-----+
//! queries   | all | all | (m) |     |
//!           +-----+-----+-----+-----+
//!           | all | all | all | (m) |
//!           +-----+-----+-----+-----+
//! all: every query of the block sees every key
//! (m): the diagonal runs through, and a mask is needed
//! empty: nobody sees it; neither loaded nor computed
//! ```
//!
//! The scores of one tile are all that ever exists of the matrix. The mask is aligned at the
//! **bottom right**: of $T$ queries behind a cache the *last* one sees all $S$ keys, query $t$ the
//! first $S - T + t + 1$. (Aligned at the top left, new tokens would not see the cache. Several
//! libraries have had this bug.)
//!
//! Here is the whole algorithm for one head. `Traffic` counts each number that crosses between
//! large, slow memory and the tile.

/// Numbers that cross between slow and fast memory.
struct Traffic {
  std::int64_t numbers = 0;
  void move(std::int64_t rows, std::int64_t columns) { numbers += rows * columns; }
};

/// Attention of one head (H = K = 1), causal, in blocks of Br queries and tiles of Bc keys.
void tiled_attention(Problem& p, std::int64_t Br, std::int64_t Bc, Traffic& traffic) {
  for (std::int64_t t0 = 0; t0 < p.T; t0 += Br) {
    const std::int64_t rows = std::min(Br, p.T - t0), seen = p.S - p.T + t0 + rows;
    std::vector<OnlineSoftmax> state(std::size_t(rows), OnlineSoftmax(p.Dh));
    traffic.move(rows, p.Dh);  // queries
    for (std::int64_t s0 = 0; s0 < seen; s0 += Bc) {
      const std::int64_t keys = std::min(Bc, seen - s0);
      traffic.move(2 * keys, p.Dh);  // keys and values
      for (std::int64_t t = 0; t < rows; ++t)
        for (std::int64_t s = s0; s < s0 + keys && s <= p.S - p.T + t0 + t; ++s) {
          float score = 0;
          for (std::int64_t d = 0; d < p.Dh; ++d)
            score += p.q[std::size_t((t0 + t) * p.Dh + d)] * p.k[std::size_t(s * p.Dh + d)];
          state[std::size_t(t)].add(score * p.scale(), &p.v[std::size_t(s * p.Dh)]);
        }
    }
    for (std::int64_t t = 0; t < rows; ++t)
      p.lse[std::size_t(t0 + t)] =
          state[std::size_t(t)].finish(&p.out[std::size_t((t0 + t) * p.Dh)]);
    traffic.move(rows, p.Dh + 1);  // output and lse
  }
}

//! ## Bytes: what the formula says
//!
//! Naive attention writes the matrix of scores, reads it for the softmax, writes the weights and
//! reads them for the product with $V$: $4 N^2$ numbers, and $4 N D_h$ for Q, K, V and O. The
//! tiled one reads Q and writes O once, but K and V again for each block of queries. With a fast
//! memory of $M$ numbers, split evenly among q, o, k and v, a block has $B_r = M / 4D_h$ rows, and
//! there are $N / B_r = 4 N D_h / M$ blocks: in all about $8 N^2 D_h^2 / M$ numbers without a mask
//! and half of that with one. That is theorem 2 of the paper, $\Theta(N^2 D_h^2 / M)$ against
//! $\Theta(N D_h + N^2)$: what counts is how many rows of the matrix's inputs fit in fast memory.

void show_bytes(Run& run) {
  run.section("bytes");
  const std::int64_t N = run.self_test() ? 256 : 1024, Dh = 32;
  Problem p(N, N, 1, 1, Dh), exact(N, N, 1, 1, Dh);
  exact.reference();
  const double naive = double(4 * N * N + 4 * N * Dh);
  run.print("N = {}, Dh = {}; naive: {:.2f} MB\n", N, Dh, 4 * naive / 1e6);
  run.print("{:>12} {:>6} {:>10} {:>12} {:>8}\n", "M, numbers", "rows", "moved, MB",
            "formula, MB", "gain");
  std::vector<double> size, moved, formula;
  bool counted = true;
  double worst = 0;
  for (std::int64_t rows = 8; rows <= 128; rows *= 2) {
    Traffic traffic;
    tiled_attention(p, rows, rows, traffic);
    keep_worst(worst, difference(p.out, exact.out));
    const std::int64_t blocks = N / rows;  // block b loads b + 1 tiles of keys and values
    counted = counted &&
              traffic.numbers == 2 * N * Dh + N + blocks * (blocks + 1) / 2 * 2 * rows * Dh;
    const double M = double(4 * rows * Dh), term = 4.0 * double(N * N * Dh * Dh) / M;
    size.push_back(M);
    moved.push_back(4 * double(traffic.numbers) / 1e6);
    formula.push_back(4 * term / 1e6);
    run.print("{:>12} {:>6} {:>10.2f} {:>12.2f} {:>7.1f}x\n", M, rows, moved.back(),
              formula.back(), naive / double(traffic.numbers));
  }
  run.series("bytes", "numbers of fast memory", "moved, MB", size,
             {{"counted", moved}, {"4 N² Dh² / M", formula}});
  run.metric("bytes_doubling", moved[0] / moved[1], "x");
  run.metric("bytes_gain", 4 * naive / 1e6 / moved.back(), "x");
  run.check(counted, "every count is exactly what the tiles' sizes say");
  run.check(worst <= 1e-4,
            fmt::format("every tile size gives the same: within {:.0e}", worst));
  run.check(moved[0] / formula[0] < 1.5 && moved[0] / formula[0] > 1,
            "with little fast memory the formula's term is most of it");
}

//! @output bytes
//! @plot bytes Twice the fast memory, half the traffic, until reading Q and writing O is what remains.
//! @figure tiles Move the slider: which tiles a block of queries loads.
//!
//! The first doubling of fast memory divides the traffic by {{bytes_doubling:.2f}}; at the end the
//! tiles move {{bytes_gain:.0f}} times less than naive attention does.
//! @expect bytes_gain > 4

//! ## Exactly the same
//!
//! Flash attention is not an approximation. The kernel of this library has the structure above
//! with SIMD, chunks of 128 keys and all heads of a group at once:
//!
//! @show kernels/cpu/attention_tasks.hpp:chunks
//!
//! It is compared with the definition in f64, for shapes that break careless tiles: one key, a
//! prime number of them, more heads than key/value heads, a few queries behind a long cache, and
//! more queries than keys, so that some see nothing.

//! @fold A KV cache for one sequence that attends with the flash kernel
/// Keys and values of all layers, on the host.
class FlashCache final : public KvCache {
 public:
  explicit FlashCache(Model& model)
      : device_(model.device()), layers_(std::size_t(model.config().n_layers)) {}
  void begin(const DeviceBatch& batch) override {
    LAB_CHECK(batch.host.segments().size() == 1,
              "this cache holds one sequence; the batch has {}",
              batch.host.segments().size());
  }
  void append(std::int64_t layer, DeviceView<const float, 3> k,
              DeviceView<const float, 3> v) override {
    Layer& own = layers_[std::size_t(layer)];
    const auto keys = download(device_, k);
    own.k.insert(own.k.end(), keys.data, keys.data + keys.size());
    const auto values = download(device_, v);
    own.v.insert(own.v.end(), values.data, values.data + values.size());
    own.row = {k.shape[1], k.shape[2]};
  }
  void attend(std::int64_t layer, DeviceView<float, 3> out, DeviceView<const float, 3> q,
              float scale) override {
    const Layer& own = layers_[std::size_t(layer)];
    const auto [T, H, Dh] = q.shape;
    const std::int64_t K = own.row[0], S = std::ssize(own.k) / (K * Dh);
    const std::int32_t queries[] = {0, std::int32_t(T)}, keys[] = {0, std::int32_t(S)};
    std::vector<float> result(std::size_t(T * H * Dh)), lse(std::size_t(T * H));
    cpu::flash_attention<float>(
        {result.data(), {T, H, Dh}}, {lse.data(), {T, H}}, download(device_, q),
        {own.k.data(), {S, K, Dh}}, {own.v.data(), {S, K, Dh}},
        {{queries, {2}}, {keys, {2}}, T}, scale, AttentionMask::causal);
    device_.upload(reinterpret_cast<std::byte*>(out.data), result.data(),
                   result.size() * sizeof(float));
  }

 private:
  struct Layer {
    std::vector<float> k, v;  // (S, K, Dh)
    std::array<std::int64_t, 2> row{};
  };
  Device& device_;
  std::vector<Layer> layers_;
};

//! The same kernel in the model, behind the seam of chapter 02, must not change a token either. Tokens
//! alone are a weak witness: a small model with a wrong mask may well write the same ones. So the
//! logits are compared too, of a text that comes in pieces of three tokens.

/// The largest difference of a logit from that of chapter 01's pass over the whole text.
double logit_difference(Model& model) {
  const auto text =
      prompt_ids(model.tokenizer(), "Once upon a time there was a small fox.");
  FlashCache flash(model);
  NoKvCache nothing(model.device());
  double worst = 0;
  for (std::size_t first = 0; first < text.size(); first += 3) {
    const std::size_t last = std::min(first + 3, text.size());
    const std::span all(text.data(), last);
    const auto step = model.transformer().forward(
        single_sequence(std::int64_t(first), all.subspan(first)), flash);
    const std::vector<float> ours(step.data, step.data + step.size());
    const auto whole = model.transformer().forward(single_sequence(0, all), nothing);
    keep_worst(worst, difference(ours, {whole.data, whole.data + whole.size()}));
  }
  return worst;
}

void check_exact(Run& run, Model& model) {
  run.section("exact");
  double worst = 0;
  for (const auto& [T, S, H, K, Dh] : {std::array<std::int64_t, 5>{1, 1, 1, 1, 64},
                                       {127, 127, 4, 2, 64},
                                       {257, 257, 2, 1, 128},
                                       {3, 401, 8, 2, 32},
                                       {9, 5, 2, 2, 32}}) {
    Problem flash(T, S, H, K, Dh), exact(T, S, H, K, Dh);
    flash.flash();
    exact.reference();
    double d = difference(flash.out, exact.out);
    keep_worst(d, difference(flash.lse, exact.lse));
    run.print("{:>4} queries, {:>4} keys, heads {} on {}, Dh {:>3}: {:.1e}\n", T, S, H, K,
              Dh, d);
    keep_worst(worst, d);
  }
  run.check(worst <= 1e-4, "output and lse within 1e-4 of the definition in f64");
  GenerateOptions options;
  options.max_tokens = run.self_test() ? 16 : 32;
  options.ignore_end = true;
  bool equal = true;
  for (const char* prompt : {"What is 2+2?", "Once upon a time"}) {
    const auto ids = prompt_ids(model.tokenizer(), prompt);
    FlashCache cache(model);
    equal = generate(model, cache, ids, options).ids ==
                generate_naive(model, ids, options).ids &&
            equal;
  }
  run.check(equal, "the greedy tokens are those of chapter 01");
  const double logits = logit_difference(model);
  run.metric("exact_logits", logits);
  run.check(logits <= 1e-3,
            fmt::format("largest difference of a logit {:.1e} <= 1e-3", logits));
}

//! @output exact
//! @expect exact_logits <= 0.001

//! ## Two halves make a whole
//!
//! In a decode step there is one query and a cache of thousands of keys. Tiles of queries are of no
//! use, and one processor would read all of it while the others wait. But the keys can be split:
//! each part gives an output $o_j$ and an $\mathrm{lse}_j$, and
//!
//! $$ \mathrm{lse} = \log \sum_j e^{\mathrm{lse}_j}, \qquad
//!    o = \sum_j e^{\mathrm{lse}_j - \mathrm{lse}} \, o_j . $$
//!
//! That is step 2 once more, with parts in place of single keys. The lse says how much a part
//! weighs; an output alone has lost it. Engines call this *split-KV* or *flash-decoding*.
//!
//! @show kernels/cpu/flash_attention.cpp:merge

void show_split(Run& run) {
  run.section("split");
  const std::int64_t S = run.self_test() ? 300 : 5000;
  Problem whole(1, S, 8, 2, 64);
  whole.flash();
  double worst = 0;
  for (const std::int64_t parts : {2, 4, 16, 64}) {
    std::vector<float> out(whole.out.size()), lse(whole.lse.size(), -INFINITY);
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t first = i * S / parts, last = (i + 1) * S / parts;
      Problem part = whole;
      part.S = last - first;
      part.key_starts = {0, std::int32_t(part.S)};
      for (std::vector<float>* x : {&part.k, &part.v})
        *x = {x->begin() + first * 2 * 64, x->begin() + last * 2 * 64};
      part.flash();
      cpu::merge_attention_states({out.data(), {1, 8, 64}}, {lse.data(), {1, 8}},
                                  part.of_queries(part.out), {part.lse.data(), {1, 8}});
    }
    double d = difference(out, whole.out);
    keep_worst(d, difference(lse, whole.lse));
    run.print("{:>3} parts of {} keys: largest difference {:.1e}\n", parts, S, d);
    keep_worst(worst, d);
  }
  run.check(worst <= 1e-5, "merged parts are the whole, to within 1e-5");
}

//! @output split

//! ## Memory and time
//!
//! Both forms of attention, both with this library's best matrix code, on one head of width 64 and a
//! causal mask. They take turns, and the ratio is the median over pairs, so that a busy machine disturbs
//! both alike. Naive attention leaves out most of what the mask hides, too: the difference is the
//! matrix.

void show_speed(Run& run) {
  run.section("speed");
  std::vector<double> length, flash, naive, matrix, own;
  run.print("{:>6} {:>11} {:>11} {:>7} {:>12} {:>10}\n", "N", "naive, ms", "flash, ms",
            "ratio", "matrix, MB", "lse, MB");
  const std::int64_t last = run.self_test() ? 512 : 8192;
  double short_ratio = 0, long_ratio = 0;
  for (std::int64_t N = 256; N <= last; N *= 2) {
    Problem p(N, N, 1, 1, 64);
    std::vector<double> flash_ms, naive_ms, ratios;
    std::int64_t bytes = 0;
    const std::int64_t runs = std::clamp<std::int64_t>((1 << 25) / (N * N), 3, 101);
    for (std::int64_t i = 0; i < (run.self_test() ? 1 : runs); ++i) {
      naive_ms.push_back(milliseconds([&] { bytes = p.naive(); }));
      flash_ms.push_back(milliseconds([&] { p.flash(); }));
      ratios.push_back(naive_ms.back() / flash_ms.back());
    }
    const double ratio = median(ratios);
    length.push_back(double(N));
    naive.push_back(median(naive_ms));
    flash.push_back(median(flash_ms));
    matrix.push_back(double(bytes) / 1e6);
    own.push_back(double(p.lse.size() * sizeof(float)) / 1e6);
    run.print("{:>6} {:>11.3f} {:>11.3f} {:>6.2f}x {:>12.3f} {:>10.4f}\n", N, naive.back(),
              flash.back(), ratio, matrix.back(), own.back());
    if (N == 256) short_ratio = ratio;
    if (N == 4096) long_ratio = ratio;
  }
  run.series("time", "N", "time, ms", length, {{"naive", naive}, {"flash", flash}});
  run.series("memory", "N", "memory beside Q, K, V and O, MB", length,
             {{"naive: the matrix", matrix}, {"flash: the lse", own}});
  if (!run.self_test()) {
    run.metric("speedup_256", short_ratio, "x");
    run.metric("speedup_4096", long_ratio, "x");
    run.check(short_ratio >= 0.8,
              "at N = 256 flash attention is not slower (0.8x or more)");
    run.check(long_ratio >= 1.2, "at N = 4,096 it is faster (1.2x or more)");
  }
  run.metric("matrix_last", matrix.back(), "MB");
  run.metric("lse_last", 1e3 * own.back(), "kB");
  const double steps = length.back() / length.front();
  run.check(
      matrix.back() / matrix.front() == steps * steps && own.back() / own.front() == steps,
      fmt::format("N times {}: the matrix times {}, the lse times {}", steps, steps * steps,
                  steps));
}

//! @output speed
//! @plot time One head, causal. Both are quadratic in time: each query still meets each key.
//! @plot memory What is stored beside the operands.
//!
//! Flash attention is {{speedup_256:.1f}} times as fast at $N = 256$ and **{{speedup_4096:.1f}} times** at
//! 4,096: never storing the matrix pays at once. And for the longest text it keeps {{lse_last:.0f}} kB
//! where the matrix of *one head* takes {{matrix_last:.0f}} MB.
//! @expect speedup_4096 > 1.3
//! @expect speedup_256 > 0.8

//! ## Backward, without the matrix
//!
//! Training differentiates attention, and the textbook way keeps the weights $P$ of the forward pass:
//! the matrix again, now for every layer at once. But a weight is a function of what is there
//! anyway: $P_{ts} = e^{x_{ts} - \mathrm{lse}_t}$. With $\mathrm{d}o_t$ given,
//!
//! $$ \mathrm{d}v_s = \sum_t P_{ts} \, \mathrm{d}o_t, \qquad
//!    \mathrm{d}x_{ts} = P_{ts} \left( \mathrm{d}o_t \cdot v_s - \mathrm{d}o_t \cdot o_t \right), $$
//! $$ \mathrm{d}q_t = c \sum_s \mathrm{d}x_{ts} \, k_s, \qquad
//!    \mathrm{d}k_s = c \sum_t \mathrm{d}x_{ts} \, q_t , $$
//!
//! with the scale $c = 1/\sqrt{D_h}$. The term $\mathrm{d}o_t \cdot o_t$ is the mean
//! $\sum_s P_{ts} \, \mathrm{d}o_t \cdot v_s$, which would need the whole row: the output has it already. One
//! exp more for each pair, and no matrix. To trust four formulas with signs and transposes in
//! them, nudge a number and look:

/// The loss whose derivative by the output is dout, from the definition.
double loss(Problem p) {
  p.reference();
  double sum = 0;
  for (std::size_t i = 0; i < p.out.size(); ++i)
    sum += double(p.out[i]) * double(p.dout[i]);
  return sum;
}

void check_backward(Run& run) {
  run.section("backward");
  Problem p(7, 11, 4, 2, 8);
  p.flash();
  std::vector<float> dq(p.q.size()), dk(p.k.size()), dv(p.v.size());
  cpu::flash_attention_backward(
      {dq.data(), {p.T, p.H, p.Dh}}, {dk.data(), {p.S, p.K, p.Dh}},
      {dv.data(), {p.S, p.K, p.Dh}}, p.of_queries(p.dout), p.of_queries(p.q),
      p.of_keys(p.k), p.of_keys(p.v), p.of_queries(p.out), {p.lse.data(), {p.T, p.H}},
      p.batch(), p.scale(), AttentionMask::causal);
  double worst = 0;
  for (const auto& [name, x, derivative] : {std::tuple{"dq", &Problem::q, &dq},
                                            {"dk", &Problem::k, &dk},
                                            {"dv", &Problem::v, &dv}}) {
    double largest = 0;
    for (std::size_t i = 0; i < derivative->size(); ++i) {
      Problem up = p, down = p;
      (up.*x)[i] += 0.01f;
      (down.*x)[i] -= 0.01f;
      const double slope =
          (loss(up) - loss(down)) / (double((up.*x)[i]) - double((down.*x)[i]));
      keep_worst(largest, std::abs(slope - double((*derivative)[i])));
    }
    run.print("{}: {:>3} derivatives, largest difference from the slope {:.1e}\n", name,
              derivative->size(), largest);
    keep_worst(worst, largest);
  }
  run.check(worst <= 2e-3, "all derivatives are the slopes, to within 2e-3");
}

//! @output backward
//!
//! ## Where it does not help
//!
//! - **Short texts.** There is little memory to save: at $N = 256$ the matrix has a quarter of a MB.
//! - **Arithmetic.** The number of multiplications is the same; attention stays quadratic in time.
//! - **Decode.** One query reads the cache once, whatever the algorithm; split-KV spreads the reading.
//!   Fewer bytes of *cache* come from GQA (chapter 02) and fewer bits.
//!
//! @predict A GPU's processor has 128 KiB of shared memory for tiles, in f16, and $D_h = 128$. How many rows
//! may a block have if q, o, k and v share it evenly? What limits it in practice?
//! @answer $M = 65{,}536$ numbers, so $M / 4 D_h = 128$ rows. In practice o and the scores are kept in
//! registers, in f32, and those run out first.

void chapter(Run& run) {
  const auto device = make_device(run.device());
  run.measured_on(device->description());
  const auto model = load_model(run.model(), *device);
  show_online(run);
  show_bytes(run);
  check_exact(run, *model);
  show_split(run);
  show_speed(run);
  check_backward(run);
}

int main(int argc, char** argv) {
  return run_chapter("06_flash_attention", chapter, argc, argv);
}

//! ## What a production engine does differently
//!
//! - On a GPU the products of a tile run on tensor cores, tiles arrive by asynchronous copies while the one before is
//!   computed, and shared memory is swizzled to avoid bank conflicts: `kernels/cuda` has such a version. (On this page
//!   attention runs on the CPU; `--device` says where the rest of the model does.)
//! - It reads keys and values through a block table (chapter 05), and takes sequences of all lengths in one call.
//! - It chooses the number of split-KV parts from the lengths and the number of processors.
//!
//! ## Further reading
//!
//! - Dao et al. 2022, *FlashAttention*, arXiv:2205.14135, section 3 and theorem 2: tiles, and the bytes they move.
//! - Dao 2023, *FlashAttention-2*, arXiv:2307.08691, section 3: the loop order used here, and one division at the end.
//! - Milakov and Gimelshein 2018, *Online normalizer calculation for softmax*, arXiv:1805.02867: step 2.
//! - Dao et al. 2023, *Flash-Decoding for long-context inference*: splitting the keys.
