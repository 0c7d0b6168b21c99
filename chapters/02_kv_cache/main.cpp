//! # The KV cache
//! @builds-on 01_naive_decode
//! @time 60
//! @exercise 02_kv_cache
//! @summary Keep keys and values: linear instead of quadratic cost, paid in memory
//! @uses lib/kv_cache/contiguous.cpp lib/decode/generate.cpp
//!
//! Chapter 01 ended with a waste: to write token 500, the naive loop computes tokens 1 to 499
//! again. This chapter removes it with the oldest trick there is, a table of results already
//! computed. What may be kept, what does it buy, and what does it cost?
//!
//! **You will learn to**
//! - say which numbers of a Transformer depend only on the past, and why exactly two per layer
//!   and token are worth keeping;
//! - turn quadratic decoding into linear decoding, and check that no token changed;
//! - compute, on paper, how many bytes the cache of any model takes, and catch a textbook that
//!   got it wrong;
//! - say what MHA, GQA and MQA trade, and when the cache does not help.

//! @fold Includes
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>

#include "lab/core/run.hpp"
#include "lab/decode/generate.hpp"
#include "lab/decode/no_kv_cache.hpp"
#include "lab/decode/recorded_decode.hpp"
#include "lab/kv_cache/contiguous.hpp"

using namespace lab;

//! ## What may be kept
//!
//! For the newest token $t$, one head of attention in one layer computes
//!
//! $$ o_t = \sum_{s \le t} \operatorname{softmax}_s\!\left(\frac{q_t \cdot k_s}{\sqrt{D_h}}\right) v_s . $$
//!
//! Look at the indices. The query $q_t$ is new at every step, and used in that step only. But
//! $k_s$ and $v_s$ belong to token $s$ alone, and under the causal mask nothing that comes later
//! can change them. They are the same at every step: one copy will do. Everything else about an
//! earlier token, its residual stream, its queries, its MLP, is never looked at again.
//!
//! That copy is the **KV cache**: for each layer, an array of keys and one of values, with a row
//! for each position. Keys go in after RoPE has turned them; the angle depends on the token's own
//! position, so it never changes either.
//!
//! ## The same loop, two lines longer
//!
//! A step now passes only the *new* tokens through the model. All of the prompt's at first, then
//! one at a time:
//!
//! @show lib/decode/generate.cpp:generate
//!
//! In memory the cache is one array of shape (2, L, sequences, capacity, K, Dh). For one layer of
//! one sequence, after a prompt of 3 tokens and 2 decode steps:
//!
//! ```
//!            K heads of Dh numbers
//! position   +--------+--------+
//!        0   |  k_0   |  k_0   |  .
//!        1   |  k_1   |  k_1   |  | written by the prefill, in one piece
//!        2   |  k_2   |  k_2   |  '
//!        3   |  k_3   |  k_3   |    written by decode step 1
//!        4   |  k_4   |  k_4   |    written by decode step 2, which reads rows 0 to 4
//!        5   |        |        |  .
//!      ...   |        |        |  | reserved, not used yet
//! capacity   +--------+--------+
//! ```
//!
//! The cache stores what attention is about to need:
//!
//! @show lib/kv_cache/contiguous.cpp:append
//!
//! and attention reads rows 0 to `kv_len` of it instead of keys computed a moment ago:
//!
//! @show lib/kv_cache/contiguous.cpp:attend
//!
//! The forward function of chapter 01 did not change by a letter: it always called `append` and
//! `attend`, and chapter 01 gave it a cache that forgets.
//!
//! @predict In a step with a cache, the batch holds one token, so its index in the batch is 0.
//! Which position must RoPE use, and what would you see if it used the index?
//! @answer The absolute position, $t$. With index 0 every decoded token's query and key would be
//! turned as if it were the first of the text. The first generated token would still be right
//! (it comes from the prefill), then the text would fall apart.

//! ## Watch it write
//!
//! One prompt, both loops. The text is printed once; the paces are what each loop measured.

void show_answer(Run& run, Model& model) {
  run.section("answer");
  const std::string prompt = "Once upon a time";
  const auto ids = prompt_ids(model.tokenizer(), prompt);
  GenerateOptions options;
  options.max_tokens = run.self_test() ? 8 : 64;
  const auto cache = make_contiguous_cache(
      model.transformer(), 1,
      positions_needed(model.config(), std::ssize(ids), options.max_tokens));
  const RequestMetrics naive = generate_naive(model, ids, options).metrics;
  run.print("{}", prompt);
  const RequestMetrics cached =
      generate(model, *cache, ids, options, [&](const std::string& text) {
        run.print("{}", text);
      }).metrics;
  run.print("\n\nnaive     TTFT {:.2f} ms, TPOT {:.2f} ms\n", naive.ttft_ms(),
            naive.tpot_ms());
  run.print("KV cache  TTFT {:.2f} ms, TPOT {:.2f} ms\n", cached.ttft_ms(),
            cached.tpot_ms());
  run.metric("tpot_naive", naive.tpot_ms(), "ms");
  run.metric("tpot_cached", cached.tpot_ms(), "ms");
}

//! @output answer
//! @expect tpot_cached < tpot_naive

//! ## Same answer?
//!
//! Before timing anything, check. Both loops generate from several prompts; every token must
//! agree. Then the logits: those of one step with the cache, against a pass over the whole text.

/// Generates without and with a cache. @return whether all tokens agree
bool same_tokens(Run& run, Model& model, const std::string& prompt,
                 std::int64_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  options.ignore_end = true;
  const auto ids = prompt_ids(model.tokenizer(), prompt);
  const auto cache =
      make_contiguous_cache(model.transformer(), 1,
                            positions_needed(model.config(), std::ssize(ids), max_tokens));
  const GenerateResult naive = generate_naive(model, ids, options);
  const GenerateResult cached = generate(model, *cache, ids, options);
  run.print("{:<28} {:>3} tokens  {}\n", "\"" + prompt.substr(0, 24) + "\"",
            cached.ids.size(), cached.ids == naive.ids ? "equal" : "DIFFERENT");
  return cached.ids == naive.ids;
}

/// The largest difference between the logits of cached steps and of passes over the whole
/// text.
double largest_difference(Model& model, const std::vector<std::int32_t>& text) {
  const auto cache = make_contiguous_cache(model.transformer(), 1, std::ssize(text));
  NoKvCache nothing(model.device());
  double worst = 0;
  for (std::int64_t t = 0; t < std::ssize(text); ++t) {
    const std::span prefix(text.data(), static_cast<std::size_t>(t + 1));
    const auto step =
        model.transformer().forward(single_sequence(t, prefix.last(1)), *cache);
    const std::vector<float> cached(step.data, step.data + step.size());
    const auto whole = model.transformer().forward(single_sequence(0, prefix), nothing);
    for (std::size_t i = 0; i < cached.size(); ++i) {
      const double d = std::abs(double(cached[i]) - double(whole.data[i]));
      if (std::isnan(d) || d > worst) worst = d;  // a NaN stays
    }
  }
  return worst;
}

void check_same(Run& run, Model& model) {
  run.section("same");
  const std::int64_t n = run.self_test() ? 8 : 48;
  bool equal = true;
  for (const char* prompt :
       {"What is 2+2?", "Once upon a time", "Repeat: red fox, blue kite\nAnswer:"})
    equal = same_tokens(run, model, prompt, n) && equal;
  run.check(equal, "the cache changed no token");
  auto text =
      prompt_ids(model.tokenizer(), "Once upon a time there was a small fox named Tom.");
  if (run.self_test()) text.resize(6);
  const double worst = largest_difference(model, text);
  run.metric("worst", worst);
  run.check(worst <= 1e-3,
            fmt::format("largest difference of a logit {:.1e} <= 1e-3", worst));
}

//! @output same
//! @expect worst <= 0.001
//!
//! The largest difference is {{worst:.1g}}. It can be exactly 0, because this library's kernels add
//! the numbers of one token in the same order whatever else is in the pass. Many engines choose
//! another order for a pass of one token than for a long one; then the logits differ by f32
//! rounding, a few millionths, and a test must allow for it.

//! ## Count first, then time
//!
//! To write $n$ tokens after a prompt of $P$, the naive loop passes
//! $\sum_{i=0}^{n-1} (P + i) = nP + n(n-1)/2$ tokens through the model, the cached one $P + n - 1$.
//! That is a count, exact on any machine. Here it is, measured by a cache that counts:

/// Passes everything on and counts the tokens that go through the model.
class CountingCache final : public KvCache {
 public:
  explicit CountingCache(KvCache& inner) : inner_(inner) {}
  void begin(const DeviceBatch& batch) override {
    tokens += batch.host.n_tokens();
    inner_.begin(batch);
  }
  void append(std::int64_t layer, DeviceView<const float, 3> k,
              DeviceView<const float, 3> v) override {
    inner_.append(layer, k, v);
  }
  void attend(std::int64_t layer, DeviceView<float, 3> out, DeviceView<const float, 3> q,
              float scale) override {
    inner_.attend(layer, out, q, scale);
  }
  std::int64_t tokens = 0;

 private:
  KvCache& inner_;
};

void show_count(Run& run, Model& model) {
  run.section("count");
  const std::int64_t P = 16, n = run.self_test() ? 8 : 64;
  std::vector<std::int32_t> text(static_cast<std::size_t>(P + n), 1);
  std::iota(text.begin(), text.end(), 1);
  const auto contiguous = make_contiguous_cache(model.transformer(), 1, P + n);
  NoKvCache nothing(model.device());
  CountingCache naive(nothing), cached(*contiguous);
  for (std::int64_t i = 0; i < n; ++i) {  // step i makes token i
    const std::span all(text.data(), static_cast<std::size_t>(P + i));
    model.transformer().forward(single_sequence(0, all), naive);
    const auto fresh = i == 0 ? all : all.last(1);
    model.transformer().forward(single_sequence(i == 0 ? 0 : P + i - 1, fresh), cached);
  }
  run.print("{:>10} {:>12} {:>12}\n", "", "counted", "formula");
  run.print("{:>10} {:>12} {:>12}\n", "naive", naive.tokens, n * P + n * (n - 1) / 2);
  run.print("{:>10} {:>12} {:>12}\n", "cached", cached.tokens, P + n - 1);
  run.metric("count_naive", double(naive.tokens));
  run.metric("count_cached", double(cached.tokens));
  run.check(naive.tokens == n * P + n * (n - 1) / 2 && cached.tokens == P + n - 1,
            "both counts are what the formulas say");
}

//! @output count
//!
//! Time follows. Below, both loops write up to position 512: one step's time at each position, and
//! the sum of all steps so far.

double milliseconds(const std::function<void()>& f) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  f();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + std::ptrdiff_t(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// Sums step times measured at every `block` positions into the time of all steps so far.
std::vector<double> running_total(const std::vector<double>& step_ms, double block) {
  std::vector<double> total;
  double sum = 0;
  for (const double ms : step_ms) total.push_back(sum += ms * block);
  return total;
}

void show_speed(Run& run, Model& model) {
  run.section("speed");
  Transformer& transformer = model.transformer();
  const std::int64_t last =
      std::min<std::int64_t>(run.self_test() ? 32 : 512, model.config().context_length);
  const std::int64_t block = run.self_test() ? 16 : 32;
  std::vector<std::int32_t> text(static_cast<std::size_t>(last), 1);
  const auto cache = make_contiguous_cache(model.transformer(), 1, last);
  NoKvCache nothing(model.device());
  std::vector<double> position, naive, cached;
  for (std::int64_t begin = 0; begin < last; begin += block) {
    std::vector<double> steps;
    for (std::int64_t t = begin; t < begin + block; ++t)
      steps.push_back(milliseconds([&] {
        transformer.forward(single_sequence(t, {&text[std::size_t(t)], 1}), *cache);
      }));
    const std::span prefix(text.data(), static_cast<std::size_t>(begin + block / 2));
    std::vector<double> passes;
    for (int i = 0; i < (run.self_test() ? 1 : 3); ++i)
      passes.push_back(
          milliseconds([&] { transformer.forward(single_sequence(0, prefix), nothing); }));
    position.push_back(double(begin + block / 2));
    cached.push_back(median(steps));
    naive.push_back(median(passes));
  }
  const auto naive_total = running_total(naive, double(block)),
             cached_total = running_total(cached, double(block));
  run.print("{:>9} {:>13} {:>13} {:>8} {:>14} {:>14}\n", "position", "naive, ms",
            "cached, ms", "ratio", "naive sum, s", "cached sum, s");
  for (std::size_t i = 0; i < position.size(); i += 3)
    run.print("{:>9.0f} {:>13.3f} {:>13.3f} {:>7.0f}x {:>14.3f} {:>14.4f}\n", position[i],
              naive[i], cached[i], naive[i] / cached[i], naive_total[i] / 1e3,
              cached_total[i] / 1e3);
  run.series("step", "position of the token", "time of its step, ms", position,
             {{"naive", naive}, {"KV cache", cached}});
  run.series("total", "tokens written", "time for all of them, ms", position,
             {{"naive", naive_total}, {"KV cache", cached_total}});
  // A quadratic sum grows fourfold from half way to the end, a linear one twofold.
  const std::size_t half = position.size() / 2 - 1, end = position.size() - 1;
  run.metric("speedup_last", naive.back() / cached.back(), "x");
  run.metric("speedup_total", naive_total.back() / cached_total.back(), "x");
  run.metric("naive_doubling", naive_total[end] / naive_total[half], "x");
  run.metric("cached_doubling", cached_total[end] / cached_total[half], "x");
  run.metric("last_position", double(last));
}

//! @output speed
//! @plot step One step, against the position of the token it makes. Without a cache every step pays for the whole text again.
//! @plot total All steps so far. Without a cache the sum is quadratic, with one it is nearly linear.
//! @figure cache_step Move the slider: which rows of K and V a step computes (filled), which it reads (outlined), and what it costs.
//!
//! Near position {{last_position:.0f}} a step is **{{speedup_last:.0f}} times faster**, the whole
//! text {{speedup_total:.0f}} times. Doubling the length multiplies the naive sum by
//! {{naive_doubling:.1f}} and the cached one by {{cached_doubling:.1f}}: quadratic against linear.
//! (Not exactly 4 and 2. Attention still has to meet every earlier key, so a cached step grows too,
//! only slowly; and short passes are inefficient, so the naive sum starts above its parabola.)
//! @expect speedup_last > 5
//! @expect naive_doubling > 2.8
//! @expect cached_doubling < 2.6

//! ## What it costs: memory
//!
//! The keys and values live as long as the sequence does. With $L$ layers, $K$ key/value heads of
//! width $D_h$ and $b$ bytes a number, each token keeps
//!
//! $$ \underbrace{2}_{\text{keys and values}} \cdot\, L \cdot K \cdot D_h \cdot b \ \text{bytes.} $$
//!
//! $K$ is what GQA makes smaller. The program allocates caches for this model's shape with as
//! many key/value heads as query heads (MHA), with its own number, and with one (MQA), in three
//! number formats, and compares what they hold with the formula.

void show_memory(Run& run, const Model& model) {
  run.section("memory");
  const Config& own = model.config();
  const std::int64_t positions = own.context_length;
  run.print("{:<24} {:>5} {:>14} {:>14} {:>13}\n", "heads", "type", "bytes/token",
            "formula", fmt::format("MiB at {}", positions));
  bool all_equal = true;
  for (const auto& [label, kv_heads] : {std::pair{"MHA", own.n_heads},
                                        {"GQA, this model", own.n_kv_heads},
                                        {"MQA", std::int64_t{1}}})
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      Config config = own;
      config.n_kv_heads = kv_heads;
      const auto cache = make_contiguous_cache(config, 1, positions, dtype);
      const std::int64_t b = dtype_info(dtype).block_bytes;
      const std::int64_t formula =
          2 * config.n_layers * config.n_kv_heads * config.head_dim * b;
      all_equal = all_equal && cache->bytes() == positions * formula;
      run.print("{:<24} {:>5} {:>14} {:>14} {:>13.2f}\n",
                fmt::format("{}: {} for {}", label, kv_heads, own.n_heads), name(dtype),
                cache->bytes() / positions, formula, double(cache->bytes()) / (1 << 20));
    }
  run.metric("kv_per_token", double(kv_bytes_per_token(own, 4)), "bytes");
  run.metric("gqa_saving", double(own.n_heads) / double(own.n_kv_heads), "x");
  run.check(all_equal, "every cache has exactly the formula's bytes");
}

//! @output memory
//!
//! @predict A popular text says that the KV cache of a 7B model "passes 2 GB at 2,048 tokens" in 16
//! bit. The model has 32 layers and 32 key/value heads of width 128. Is that right?
//! @answer No. $2 \cdot 32 \cdot 32 \cdot 128 \cdot 2 = 524{,}288$ bytes are half a MiB a token:
//! 1 GiB at 2,048 tokens, 2 GiB at 4,096. The program's table agrees. (The text seems to have
//! counted 4 bytes a number, or to have forgotten that keys *and* values are in the 2.)

void show_models(Run& run) {
  run.section("models");
  struct Shape {
    const char* name;
    std::int64_t layers, kv_heads, head_dim;
  };
  run.print("{:<26} {:>11} {:>12} {:>12} {:>12}\n", "model, 16 bit", "KiB/token",
            "GiB at 2,048", "at 4,096", "at 131,072");
  for (const Shape& s : {Shape{"7B, 32 KV heads (MHA)", 32, 32, 128},
                         Shape{"8B, 8 KV heads (GQA)", 32, 8, 128},
                         Shape{"70B, 8 KV heads (GQA)", 80, 8, 128}}) {
    Config c;
    c.n_layers = s.layers;
    c.n_kv_heads = s.kv_heads;
    c.head_dim = s.head_dim;
    const double token = double(kv_bytes_per_token(c, 2)), gib = 1 << 30;
    run.print("{:<26} {:>11.0f} {:>12.2f} {:>12.2f} {:>12.1f}\n", s.name, token / 1024,
              token * 2048 / gib, token * 4096 / gib, token * 131072 / gib);
    if (s.kv_heads == 32) run.metric("gib_7b_2048", token * 2048 / gib, "GiB");
  }
}

//! @output models
//! @expect gib_7b_2048 == 1
//!
//! ## Half the bytes
//!
//! Keys and values may be stored in 16 bits while everything is still computed in f32. That halves
//! the memory, and the bytes that attention reads. It is no longer exactly the same computation:
//! each stored number is rounded. How far do the logits move, and does a token change?

void show_half(Run& run, Model& model) {
  run.section("half");
  const auto ids = prompt_ids(model.tokenizer(), "Once upon a time");
  GenerateOptions options;
  options.max_tokens = run.self_test() ? 8 : 64;
  const auto generate_in = [&](DType dtype) {
    const auto cache = make_contiguous_cache(
        model.transformer(), 1,
        positions_needed(model.config(), std::ssize(ids), options.max_tokens), dtype);
    return generate(model, *cache, ids, options);
  };
  const GenerateResult exact = generate_in(DType::f32);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const GenerateResult rounded = generate_in(dtype);
    const auto [a, b] = std::mismatch(exact.ids.begin(), exact.ids.end(),
                                      rounded.ids.begin(), rounded.ids.end());
    run.print("{:>5} cache: the first {} of {} tokens agree with f32\n", name(dtype),
              a - exact.ids.begin(), exact.ids.size());
    run.metric(dtype == DType::f16 ? "agree_f16" : "agree_bf16",
               double(a - exact.ids.begin()));
  }
  run.metric("half_tokens", double(exact.ids.size()));
}

//! @output half
//!
//! f16 keeps 10 bits of mantissa and agrees for {{agree_f16:.0f}} of {{half_tokens:.0f}} tokens
//! here; bf16 keeps 7. Where two tokens are nearly tied, rounding may decide otherwise, and from
//! there on the texts differ: neither is wrong. Engines default to 16 bits.
//!
//! ## A step as a whole
//!
//! With a cache a step is so little work that, on a GPU, *asking* for it becomes the cost: a layer
//! is a dozen kernels of a few microseconds each, and the host needs about as long to launch one.
//! Engines record the kernels of a step once, as a *CUDA graph*, and launch the graph. That works
//! because nothing in a step changes but numbers in memory: the token, its position, and how many
//! rows of the cache are valid. The kernels read all three from device memory.
//!
//! @show lib/decode/recorded_decode.cpp:step

void show_recorded(Run& run, Model& model) {
  run.section("recorded");
  Transformer& transformer = model.transformer();
  const std::int64_t n =
      std::min<std::int64_t>(run.self_test() ? 8 : 128, model.config().context_length);
  const auto one = make_contiguous_cache(transformer, 1, n),
             other = make_contiguous_cache(transformer, 1, n);
  RecordedDecode decode(transformer, *other);
  std::vector<double> launched, recorded;
  bool equal = true;
  for (std::int64_t t = 0; t < n; ++t) {
    const std::int32_t id = static_cast<std::int32_t>(t) + 1;
    std::vector<float> expected;
    launched.push_back(milliseconds([&] {
      const auto logits = transformer.forward(single_sequence(t, {&id, 1}), *one);
      expected.assign(logits.data, logits.data + logits.size());
    }));
    recorded.push_back(milliseconds([&] {
      const auto logits = decode.step(t, id);
      equal = equal && std::equal(expected.begin(), expected.end(), logits.data);
    }));
  }
  const double one_ms = median(launched), recorded_ms = median(recorded);
  run.print("{} steps on {}\n", n, model.device().name());
  run.print("launched one by one {:>9.3f} ms a step\n", one_ms);
  run.print("recorded            {:>9.3f} ms a step, {:.2f}x\n", recorded_ms,
            one_ms / recorded_ms);
  run.metric("recorded_speedup", one_ms / recorded_ms, "x");
  run.check(equal, "recorded steps give the same logits, bit for bit");
}

//! @output recorded
//!
//! On a CPU, which this page was made on, there is nothing to launch, and the recorded step is the
//! same function called again. `--device cuda` shows the difference where there is a GPU;
//! `--device simt` runs the same graph on the emulator, to check it.
//!
//! ## Where it does not help
//!
//! - **The prompt.** Prefill computes every key and value for the first time; the cache saves
//!   nothing, and TTFT is what it was. (Unless another request had the same beginning: chapter 05.)
//! - **One token per request.** Classifying or scoring a text never decodes: no cache needed.
//! - **Memory.** On a GPU it is the cache, not the weights, that decides how many conversations
//!   fit at a time. A contiguous cache must reserve the *longest possible* text for each; most
//!   of that stays empty. Chapter 05 measures that waste and removes it.
//! - **Long texts.** A cached step still reads the whole cache: decode time grows with position
//!   once the cache outweighs the weights.
//!
//! @predict This model keeps {{kv_per_token:.0f}} bytes a token in f32. After how many tokens does
//! a decode step read as many bytes of cache as of weights?
//! @answer At (weight bytes) / (bytes a token) tokens: for this model about 5 MB / 2 KiB, some
//! 2,400 tokens, more than its context. For an 8B model in 16 bit (16 GB, 128 KiB a token) about
//! 122,000.

void chapter(Run& run) {
  const auto device = make_device(run.device());
  run.measured_on(device->description());
  const auto model = load_model(run.model(), *device);
  show_answer(run, *model);
  check_same(run, *model);
  show_count(run, *model);
  show_speed(run, *model);
  show_memory(run, *model);
  show_models(run);
  show_half(run, *model);
  show_recorded(run, *model);
}

int main(int argc, char** argv) { return run_chapter("02_kv_cache", chapter, argc, argv); }

//! ## What a production engine does differently
//!
//! - It keeps the cache in *pages*, not in one piece (vLLM; chapter 05), so that sequences of any
//!   length share one pool.
//! - It stores 16 or 8 bits a number, in a layout made for its attention kernel; llama.cpp offers
//!   4 bits, and finds keys more sensitive than values.
//! - It runs the decode steps of many sequences as one batch over one cache (chapter 03).
//! - It reuses the cache of a common prompt beginning across requests (prefix caching).
//!
//! ## Further reading
//!
//! - Pope et al. 2022, *Efficiently Scaling Transformer Inference*, arXiv:2211.05102, section 3.3:
//!   memory of the cache and multi-query attention.
//! - Shazeer 2019, *Fast Transformer Decoding: One Write-Head is All You Need*, arXiv:1911.02150,
//!   sections 2 and 3: MQA, derived from the bytes a step moves.
//! - Ainslie et al. 2023, *GQA*, arXiv:2305.13245, section 2.
//! - Kwon et al. 2023, *PagedAttention*, arXiv:2309.06180, section 3: what a contiguous cache
//!   wastes.
