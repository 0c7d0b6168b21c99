//! # Naive decode
//! @next 02_kv_cache
//! @time 90
//! @exercise 01_naive_decode
//! @summary The model from zero, the generation loop, and why decoding is slow
//!
//! You type a question, and a program answers in words. What does it compute in between, and
//! what does each word cost? This chapter builds the whole answer: first the model, one
//! operation at a time, each small enough to check with pencil and paper; then the loop that
//! makes it write; then the bill. Every later chapter is a way to lower that bill, and every one
//! of them is measured against the program you are about to read.
//!
//! **You will learn to**
//! - follow a token through a Llama-style Transformer, with the shape of every array on the way;
//! - write the generation loop, and say what greedy decoding, temperature, top-k and top-p do;
//! - tell time to first token (TTFT) from time per output token (TPOT), and measure both;
//! - compute a pass's arithmetic intensity, place it on your machine's roofline, and say from
//!   that whether it waits for memory or for arithmetic;
//! - predict how the cost of a token grows with its position when nothing is kept.
//!
//! You need C++ and the idea of a matrix product. You do not need to have trained a model, and
//! you do not need a GPU.

//! @fold Includes
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "lab/core/half.hpp"
#include "lab/core/parallel.hpp"
#include "lab/core/run.hpp"
#include "lab/core/tensor.hpp"
#include "lab/decode/generate.hpp"
#include "lab/decode/no_kv_cache.hpp"
#include "lab/kernels/attention.hpp"
#include "lab/kernels/embedding.hpp"
#include "lab/kernels/linear.hpp"
#include "lab/kernels/machine.hpp"
#include "lab/kernels/rms_norm.hpp"
#include "lab/kernels/rope.hpp"
#include "lab/kernels/silu_mul.hpp"
#include "lab/kernels/softmax.hpp"

using namespace lab;

//! ## Numbers: f32, f16, bf16
//!
//! A model is a few million to a few hundred billion numbers, its *weights*. How many bytes each
//! one takes decides how fast the model writes, as the end of this chapter shows, so start
//! there. A float is a sign, an exponent and a mantissa: $(-1)^s \cdot 2^{e} \cdot 1.m$.
//!
//! | format | sign, exponent, mantissa bits | bytes | largest | steps between 1 and 2 |
//! |---|---|---|---|---|
//! | f32 | 1, 8, 23 | 4 | $3.4 \cdot 10^{38}$ | 8,388,608 |
//! | f16 | 1, 5, 10 | 2 | 65,504 | 1,024 |
//! | bf16 | 1, 8, 7 | 2 | $3.4 \cdot 10^{38}$ | 128 |
//!
//! f16 spends its bits on precision, bf16 on range: a bf16 is the upper half of an f32. Work it
//! out for 0.1, which none of them can hold: in binary it is $1.1001100\ldots_2 \cdot 2^{-4}$,
//! and bf16 keeps seven of those digits and rounds.

void show_floats(Run& run) {
  run.section("floats");
  const float x = 0.1f;
  run.print("f32   {:.10f}\n", x);
  run.print("f16   {:.10f}   error {:.1e}\n", to_float(to_half(x)),
            std::abs(to_float(to_half(x)) - 0.1));
  run.print("bf16  {:.10f}   error {:.1e}\n", to_float(to_bfloat16(x)),
            std::abs(to_float(to_bfloat16(x)) - 0.1));
}

//! @output floats
//!
//! Weights are *stored* in these formats, and in smaller ones (chapters 07 to 09). Everything is
//! *computed* in f32 here, so that "the same result" can mean the same tokens.

//! ## Text becomes tokens
//!
//! A model reads and writes *tokens*: entries of a fixed list of $V$ pieces of text, its
//! vocabulary. A tokenizer cuts text into such pieces. Ours is byte-level byte-pair encoding
//! (BPE): it starts from single bytes, so that no text is impossible, and repeatedly joins the
//! neighbouring pair that stands first in a list of *merges* learnt from text. With the merges
//! `l l`, `h e`, `he ll`, the word `hello` goes `h e l l o`, then `h e ll o`, `he ll o`, and
//! ends as `hell o`: two tokens.

void show_tokens(Run& run, const Model& model, const std::string& text) {
  run.section("tokens");
  const auto ids = prompt_ids(model.tokenizer(), text);
  run.print("\"{}\" is {} of {} tokens:\n", text, ids.size(), model.tokenizer().size());
  for (const std::int32_t id : ids)
    run.print("{:>6}  \"{}\"\n", id, model.tokenizer().piece(id));
}

//! @output tokens
//!
//! The merging itself, with a queue that always knows the pair that stands first:
//!
//! @show lib/model/bpe.cpp:merge
//!
//! Each digit is a token of its own: sums are easier to learn when 12 is always `1`, `2`.
//! Spaces belong to the word that follows.

//! ## Tokens become vectors: the embedding
//!
//! The model works on vectors of `model_dim` $= D$ numbers. Each token has its own, a row of the
//! embedding matrix $E$ of shape $(V, D)$: $x_t = E[\mathrm{id}_t]$. For a text of $T$ tokens
//! that makes an array of shape $(T, D)$. Looking up is copying; with the matrix below, tokens 2
//! and 0 are its last and its first row.

void show_embedding(Run& run) {
  run.section("embedding");
  const Tensor<float, 2> table{{1, 2}, {3, 4}, {5, 6}};  // (V = 3, D = 2)
  const Tensor<std::int32_t, 1> ids{2, 0};               // (T = 2)
  auto x = make_tensor<float>(2, 2);                     // (T, D)
  const HostWeightView weights{reinterpret_cast<const std::byte*>(table.data()), DType::f32,
                               3, 2};
  cpu::embedding(view(x), view(ids), weights);
  run.print("token 2: ({}, {})   token 0: ({}, {})\n", x(0, 0), x(0, 1), x(1, 0), x(1, 1));
}

//! @output embedding
//! @show kernels/cpu/embedding.cpp:definition

//! ## Keeping vectors in range: RMSNorm
//!
//! The model is a stack of $L$ equal blocks, and each adds something to the vector that passes
//! through it, the *residual stream*. So that later blocks can rely on a scale, each block first
//! divides its input by the root of the mean of its squares, and multiplies by learnt weights
//! $w$ (Zhang and Sennrich 2019, arXiv:1910.07467, section 4):
//!
//! $$ \mathrm{rms}(x) = \sqrt{\tfrac{1}{D} \textstyle\sum_d x_d^2 + \epsilon}, \qquad
//!    y_d = w_d \, x_d / \mathrm{rms}(x). $$
//!
//! By hand, with $x = (3, 4)$ and $w = (1, 1)$: the mean square is $(9 + 16)/2 = 12.5$, its root
//! is 3.5355, and $y = (0.8485, 1.1314)$.

void show_rms_norm(Run& run) {
  run.section("rms_norm");
  const Tensor<float, 2> x{{3, 4}};
  const Tensor<float, 1> w{1, 1};
  auto y = make_tensor<float>(1, 2);
  cpu::rms_norm(view(y), view(x), view(w), 1e-5f);
  run.print("rms_norm(3, 4) = ({:.4f}, {:.4f})\n", y(0, 0), y(0, 1));
}

//! @output rms_norm
//! @show kernels/cpu/rms_norm.cpp:definition
//!
//! Every operation of this course has such a *reference* version, plain loops that say what is
//! meant, and a fast one that the model runs; the tests hold one against the other.

//! ## Queries, keys and values
//!
//! So far every token has been alone. Attention is where they meet. Three matrices turn each
//! token's normalised vector into three roles:
//!
//! $$ q_t = W_q\, y_t, \qquad k_t = W_k\, y_t, \qquad v_t = W_v\, y_t . $$
//!
//! The *query* says what token $t$ looks for, the *key* what a token offers to be found by, and
//! the *value* what it hands over when it is found. All three are linear layers: a weight matrix
//! of shape (out, in) times a vector, the operation that nearly all of the model's time goes to.
//!
//! @show kernels/cpu/linear.cpp:definition
//!
//! ## Attention
//!
//! The query of token $t$ is compared with the key of every token up to and including $t$ (a
//! token may not see the future: the *causal mask*). The products, scaled by
//! $1/\sqrt{D_h}$ so that they do not grow with the width $D_h$ of a head, become weights that
//! add up to 1 through the softmax, and the output is the weighted mean of the values
//! (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1):
//!
//! $$ a_{ts} = \frac{\exp(q_t \cdot k_s / \sqrt{D_h})}{\sum_{s' \le t} \exp(q_t \cdot k_{s'} / \sqrt{D_h})},
//!    \qquad o_t = \sum_{s \le t} a_{ts}\, v_s . $$
//!
//! An example to check: one query $q = (1, 0)$, two keys $(1, 0)$ and $(0, 1)$, values $(4, 0)$
//! and $(0, 4)$. Take $\ln 3$ for the scale. The scores are $\ln 3$ and $0$, their exponentials
//! 3 and 1, the weights $3/4$ and $1/4$, and the output $(3, 1)$.

void show_attention(Run& run) {
  run.section("attention");
  const Tensor<float, 3> q{{{1, 0}}};            // (T = 1, H = 1, Dh = 2)
  const Tensor<float, 3> k{{{1, 0}}, {{0, 1}}};  // (S = 2, K = 1, Dh = 2)
  const Tensor<float, 3> v{{{4, 0}}, {{0, 4}}};
  auto out = make_tensor<float>(1, 1, 2);
  cpu::attention<float>(view(out), view(q), view(k), view(v), std::log(3.0f));
  run.print("attention output: ({:.4f}, {:.4f})\n", out(0, 0, 0), out(0, 0, 1));
}

//! @output attention
//! @show kernels/cpu/attention.cpp:definition
//!
//! A block does this in `n_heads` $= H$ *heads* side by side, each with its own $D_h$ numbers of
//! $q$, so that one token can look for several things at once.
//!
//! @predict Nothing in these formulas says where a token stands: swap two earlier tokens and the
//! sums are the same. Would the model tell "dog bites man" from "man bites dog"?
//! @answer Not without help. The causal mask gives a little away, but the two orders of an earlier
//! pair look exactly alike to a later token. The order has to be put into $q$ and $k$. That is
//! what comes next.

//! ## Where a token stands: RoPE
//!
//! Rotary position embedding turns each pair of numbers of $q$ and $k$, seen as a point in the
//! plane, by an angle that grows with the token's position $p$: pair $i$ by
//! $p\,\theta_i$ with $\theta_i = b^{-2i/D_h}$ (Su et al. 2021, arXiv:2104.09864, section 3.2.2):
//!
//! $$ (x_0, x_1) \mapsto (x_0 \cos p\theta - x_1 \sin p\theta,\;
//!                        x_0 \sin p\theta + x_1 \cos p\theta). $$
//!
//! The product of two turned vectors depends only on the *difference* of their angles, so
//! attention sees distances: a query at position 5 meets a key at position 3 exactly as one at
//! 12 meets one at 10. Below, $q = k = (1, 0)$ and $\theta = 1$: the product must be
//! $\cos(5 - 3) = -0.4161$ both times.

void show_rope(Run& run) {
  run.section("rope");
  const Tensor<std::int32_t, 1> positions{5, 3, 12, 10};
  const Tensor<float, 1> inv_freq{1};  // (Dh / 2)
  auto cos = make_tensor<float>(4, 1), sin = make_tensor<float>(4, 1);
  cpu::rope_angles(view(cos), view(sin), view(positions), view(inv_freq));
  Tensor<float, 3> x{{{1, 0}}, {{1, 0}}, {{1, 0}}, {{1, 0}}};  // (T = 4, H = 1, Dh = 2)
  cpu::rope(view(x), view(cos), view(sin), RopeLayout::interleaved);
  const auto dot = [&](int a, int b) {
    return x(a, 0, 0) * x(b, 0, 0) + x(a, 0, 1) * x(b, 0, 1);
  };
  run.print("q at 5,  k at 3:   {:+.4f}\nq at 12, k at 10:  {:+.4f}\n", dot(0, 1),
            dot(2, 3));
}

//! @output rope
//! @show kernels/cpu/rope.cpp:definition
//!
//! Which numbers form a pair is a convention, and files differ: GGUF's Llama models pair
//! neighbours (2i, 2i+1), Hugging Face's pair i with i + D_h/2. Mixing the two up works at
//! position 0, where nothing turns, and garbles everything after it.
//!
//! ## Fewer keys than queries: GQA
//!
//! Keys and values are what chapter 02 will keep in memory, so models use fewer of them: with
//! *grouped-query attention*, `n_kv_heads` $= K$ key/value heads serve $H$ query heads, and query
//! head $h$ reads key/value head $\lfloor h K / H \rfloor$ (Ainslie et al. 2023,
//! arXiv:2305.13245). $K = H$ is multi-head attention (MHA), $K = 1$ multi-query attention
//! (MQA). The built-in model has 8 query heads on 2 key/value heads: heads 0 to 3 read the
//! first, 4 to 7 the second.
//!
//! This is the attention half of a block, the code that runs for every model in this course:
//!
//! @show lib/model/transformer.cpp:attention_block

//! ## The other half of a block: the MLP
//!
//! The second half lets each token think for itself. Two matrices widen its vector to `ffn_dim`
//! $= F$ numbers, one result gates the other through $\mathrm{silu}(g) = g / (1 + e^{-g})$, and a
//! third matrix brings it back to $D$ (SwiGLU: Shazeer 2020, arXiv:2002.05202):
//!
//! $$ \mathrm{mlp}(y) = W_{down} \big(\mathrm{silu}(W_{gate}\, y) \odot W_{up}\, y\big). $$
//!
//! For one gate of 1 and one of -1, both with an up value of 2: $\mathrm{silu}(1) = 0.7311$ and
//! $\mathrm{silu}(-1) = -0.2689$ make 1.4621 and -0.5379.

void show_mlp(Run& run) {
  run.section("mlp");
  const Tensor<float, 2> gate{{1, -1}}, up{{2, 2}};
  auto out = make_tensor<float>(1, 2);
  cpu::silu_mul(view(out), view(gate), view(up));
  run.print("silu(gate) * up = ({:.4f}, {:.4f})\n", out(0, 0), out(0, 1));
}

//! @output mlp
//! @show kernels/cpu/silu_mul.cpp:definition
//!
//! The MLP half of a block, with the residual sum at its end:
//!
//! @show lib/model/transformer.cpp:mlp_block
//!
//! ## Back to tokens: logits
//!
//! After the last block, one more RMSNorm and one more matrix of shape $(V, D)$ give each token
//! of the vocabulary a score, its *logit*. (Many small models use the embedding matrix again
//! here: "tied" embeddings.) That is the whole model, and this is all of its code:
//!
//! @show lib/model/transformer.cpp:forward
//!
//! All of it in one picture, for a text of T tokens, with the built-in model's sizes at the right:
//!
//! ```
//! ids          (T)
//!   | embedding (V, D)                            V = 1024, D = 256
//! x            (T, D) ------------------------+
//!   | RMSNorm                                 |
//!   | Wq -> q  (T, H, Dh)   RoPE              |   H = 8, Dh = 32
//!   | Wk -> k  (T, K, Dh)   RoPE              |   K = 2
//!   | Wv -> v  (T, K, Dh)                     |
//!   | attention: (T, H, Dh) -> Wo -> (T, D)   |
//!   + <---------------------------------------+   x = x + ...
//!   | RMSNorm                                 |
//!   | gate, up (T, F) -> silu(gate) * up      |   F = 512
//!   | Wdown -> (T, D)                         |
//!   + <---------------------------------------+   x = x + ...      L = 4 blocks
//!   | RMSNorm, output matrix (V, D)
//! logits       (N, V)   of the N tokens whose successor is asked for
//! ```
//!
//! The softmax of the logits is the model's opinion about the next token. What to do with an
//! opinion is up to the program:
//!
//! - **greedy**: always the most likely token;
//! - **temperature** $\tau$: divide the logits by it first; below 1 sharpens, above 1 flattens;
//! - **top-k**: keep the $k$ most likely and draw from those;
//! - **top-p**: keep the smallest set that is at least $p$ likely together, and draw from that.
//!
//! Logits of $\ln 4, \ln 2, \ln 1, \ln 1$ are probabilities of 4, 2, 1 and 1 eighths. Top-p with
//! $p = 0.7$ keeps two tokens: the first alone has only 0.5.

void show_sampling(Run& run) {
  run.section("sampling");
  const std::vector<float> logits{std::log(4.0f), std::log(2.0f), 0, 0};
  const auto row = [&](const char* name, SamplingParams params) {
    run.print("{:<18}", name);
    for (const Candidate& c : Sampler(params).distribution(logits, {}))
      run.print("  id {}: {:.3f}", c.id, c.probability);
    run.print("\n");
  };
  row("temperature 1", {.temperature = 1});
  row("temperature 0.5", {.temperature = 0.5});
  row("top-p 0.7", {.temperature = 1, .top_p = 0.7});
  row("greedy", {});
}

//! @output sampling
//! @show lib/decode/sampler.cpp:top_p

//! ## The loop
//!
//! A model maps a text to one next token. To write, append that token to the text and ask again,
//! until a token that means "end" or a limit. That is the whole of *autoregressive* generation.
//! The first pass, over the prompt, is called **prefill**; each one after it is a **decode** step.
//!
//! @show lib/decode/generate.cpp:loop
//!
//! The naive version of `next_logits` passes the whole text through the model at each step:
//!
//! @show lib/decode/generate.cpp:generate_naive
//!
//! Two numbers describe what the person who waits sees. **TTFT**, the time to first token, is the
//! wait before anything appears: it contains the prefill. **TPOT**, the time per output token, is
//! the pace after that: the time from the first token to the last, over the number of tokens
//! between them.

GenerateResult show_answer(Run& run, Model& model, const std::string& prompt) {
  run.section("answer");
  GenerateOptions options;
  options.max_tokens = 32;
  run.print("{}", prompt);
  const GenerateResult result =
      generate_naive(model, prompt_ids(model.tokenizer(), prompt), options,
                     [&](const std::string& text) { run.print("{}", text); });
  const RequestMetrics& m = result.metrics;
  run.print("\n\nTTFT {:.2f} ms for {} prompt tokens, TPOT {:.2f} ms over {} tokens\n",
            m.ttft_ms(), m.prompt_tokens(), m.tpot_ms(), m.output_tokens());
  run.metric("prompt_tokens", double(m.prompt_tokens()));
  run.metric("output_tokens", double(m.output_tokens()));
  run.metric("ttft", m.ttft_ms(), "ms");
  run.metric("tpot", m.tpot_ms(), "ms");
  return result;
}

//! @output answer

//! ## What a pass costs
//!
//! Count, for a pass over $T$ tokens. Every weight of the linear layers is multiplied and added
//! once per token: $2 N T$ floating-point operations (FLOP) for $N$ weights. Attention adds
//! $4 L H D_h$ for each pair of a token and one it sees. And every weight has to come from memory
//! once, whatever $T$ is: $N b$ bytes at $b$ bytes a weight.
//!
//! The **arithmetic intensity** is FLOP per byte, here about
//!
//! $$ I = \frac{2 N T}{N b} = \frac{2T}{b} , $$
//!
//! so it is the number of tokens in the pass that decides. A machine has a peak of $P$ FLOP/s and
//! reads $B$ bytes/s. A pass can run no faster than either allows, $\min(P, I B)$ FLOP/s: the
//! **roofline** (Williams, Waterman and Patterson 2009). Left of the ridge at $I = P/B$ memory is
//! the limit, right of it arithmetic.

double seconds(const std::function<void()>& f) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The best of several runs: what the others took longer is the machine's own noise.
double best_seconds(int runs, const std::function<void()>& f) {
  double best = seconds(f);
  for (int i = 1; i < runs; ++i) best = std::min(best, seconds(f));
  return best;
}

/// Some token ids to fill a pass with; which ones does not matter for its cost.
std::vector<std::int32_t> some_tokens(const Model& model, std::int64_t n) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>((7 * i + 1) % std::size_t(model.tokenizer().size()));
  return ids;
}

struct Machine {
  double flop_peak, bandwidth;
};

//! The program measures both peaks: $P$ by independent multiply-adds in registers, $B$ by reading
//! an array as large as this model's weights. (A small model stays in the CPU's caches, and is
//! read from there; a large one comes from RAM at each pass.)

Machine show_machine(Run& run, const Model& model) {
  run.section("machine");
  const double bytes = double(model.transformer().weight_bytes());
  Device& device = model.transformer().device();
  const Machine m{device.flop_peak(), device.read_bandwidth(std::size_t(bytes))};
  if (device.name() == "cpu")
    run.print("instruction set {}, {} thread(s)\n", cpu::instruction_set(), n_threads());
  run.print("peak P         {:8.1f} GFLOP/s\n", m.flop_peak / 1e9);
  run.print("bandwidth B    {:8.1f} GB/s over {:.1f} MB, the size of the weights\n",
            m.bandwidth / 1e9, bytes / 1e6);
  run.print("ridge P/B      {:8.1f} FLOP/byte\n", m.flop_peak / m.bandwidth);
  run.metric("flop_peak", m.flop_peak / 1e9, "GFLOP/s");
  run.metric("bandwidth", m.bandwidth / 1e9, "GB/s");
  run.metric("ridge", m.flop_peak / m.bandwidth, "FLOP/byte");
  run.metric("weights_mb", bytes / 1e6, "MB");
  return m;
}

//! @output machine
//!
//! @predict A decode step needs one new token, a prefill a whole prompt. For this model's
//! {{weights_mb:.1f}} MB of weights at 2 bytes each, what is the intensity of a pass over 1 token,
//! and of one over 256? On which side of the ridge at {{ridge:.1f}} FLOP/byte do they fall?
//! @answer About 1 and about 256 FLOP/byte: one token is on the memory side, 256 tokens are far on
//! the arithmetic side.

void show_roofline(Run& run, Model& model, const Machine& machine) {
  run.section("roofline");
  Transformer& transformer = model.transformer();
  std::vector<double> intensity, achieved, roof, tokens, ms;
  run.print("{:>7} {:>10} {:>11} {:>12} {:>10} {:>9}  {}\n", "tokens", "ms", "FLOP/byte",
            "GFLOP/s", "of roof", "GB/s", "limit");
  const std::int64_t largest = run.self_test() ? 64 : 256;
  for (std::int64_t T = 1; T <= largest; T *= 2) {
    const ForwardBatch batch = single_sequence(0, some_tokens(model, T));
    NoKvCache nothing(transformer.device());
    const ForwardCost cost = transformer.cost(batch);
    const double s =
        best_seconds(run.self_test() ? 1 : 7, [&] { transformer.forward(batch, nothing); });
    const double bytes = cost.weight_bytes, I = cost.flops / bytes;
    const double limit = std::min(machine.flop_peak, I * machine.bandwidth);
    tokens.push_back(double(T));
    ms.push_back(s * 1e3);
    intensity.push_back(I);
    achieved.push_back(cost.flops / s / 1e9);
    roof.push_back(limit / 1e9);
    run.print("{:>7} {:>10.3f} {:>11.1f} {:>12.1f} {:>9.0f}% {:>9.1f}  {}\n", T, s * 1e3, I,
              achieved.back(), 100 * achieved.back() / roof.back(), bytes / s / 1e9,
              limit < machine.flop_peak ? "memory" : "arithmetic");
  }
  run.series("roofline", "arithmetic intensity, FLOP/byte", "speed, GFLOP/s", intensity,
             {{"roof: min(P, I B)", roof}, {"measured", achieved}});
  run.series("pass_time", "tokens in the pass", "time, ms", tokens, {{"one pass", ms}});
  run.metric("pass_1", ms.front(), "ms");
  run.metric("pass_max", ms.back(), "ms");
  run.metric("pass_max_tokens", tokens.back());
  run.metric("per_token_ratio", ms.front() / (ms.back() / tokens.back()), "x");
  run.metric("intensity_1", intensity.front(), "FLOP/byte");
  run.metric("intensity_max", intensity.back(), "FLOP/byte");
  run.print(
      "the ridge, {:.1f} FLOP/byte, lies {} one token and {} {}\n",
      machine.flop_peak / machine.bandwidth,
      machine.flop_peak / machine.bandwidth > intensity.front() ? "right of" : "left of",
      machine.flop_peak / machine.bandwidth < intensity.back() ? "left of" : "right of",
      tokens.back());
}

//! @output roofline
//! @figure roof Move the slider: the more tokens share one reading of the weights, the higher a pass can climb under the roof.
//! @plot roofline loglog Each pass at its arithmetic intensity, under the roof that this machine's peak and bandwidth allow.
//!
//! No pass touches the roof: loads, conversions and the small operations between the matrices take
//! time that the two peaks know nothing of, and anything else that runs on the machine takes more.
//! The shape is what counts. One token takes {{pass_1:.2f}} ms; {{pass_max_tokens:.0f}} tokens in one pass take
//! {{pass_max:.1f}} ms. A token of the long pass is {{per_token_ratio:.1f}} times cheaper, because
//! its share of reading the weights is so small. **Prefill is bound by arithmetic, decode by
//! memory.** Remember the free room under the roof at one token: batching (chapter 03) and
//! speculation (chapter 04) fill it, and quantization (07 to 09) moves fewer bytes.
//!
//! @expect intensity_1 < ridge
//! @expect intensity_max > ridge
//! @expect per_token_ratio > 1.5

//! ## What a position costs
//!
//! The naive loop makes it worse. To decode the token at position $t$ it passes all $t$ earlier
//! tokens through the model again. From the count above, one step costs
//!
//! $$ C(t) = 2 N t + 2 L H D_h\, t\,(t+1) \;\text{FLOP,} $$
//!
//! so a text of $n$ tokens costs about $N n^2$: twice the length, four times the work.

void show_position(Run& run, Model& model) {
  run.section("position");
  Transformer& transformer = model.transformer();
  NoKvCache nothing(transformer.device());
  std::vector<double> position, ms, predicted;
  const std::int64_t step = run.self_test() ? 16 : 64;
  const std::int64_t last =
      std::min<std::int64_t>(run.self_test() ? 32 : 512, model.config().context_length);
  for (std::int64_t t = step; t <= last; t += step) {
    const ForwardBatch batch = single_sequence(0, some_tokens(model, t));
    const double s =
        best_seconds(run.self_test() ? 1 : 5, [&] { transformer.forward(batch, nothing); });
    position.push_back(double(t));
    ms.push_back(s * 1e3);
    predicted.push_back(transformer.cost(batch).flops);
  }
  // One free constant, the speed, fitted at the last position: the formula gives the shape.
  const double speed = predicted.back() / ms.back();
  for (double& p : predicted) p /= speed;
  run.print("{:>9} {:>12} {:>12}\n", "position", "measured, ms", "C(t), ms");
  for (std::size_t i = 0; i < ms.size(); ++i)
    run.print("{:>9.0f} {:>12.2f} {:>12.2f}\n", position[i], ms[i], predicted[i]);
  run.series("position", "position of the token", "time of its step, ms", position,
             {{"measured", ms}, {"C(t)", predicted}});
  run.metric("step_first", ms.front(), "ms");
  run.metric("step_last", ms.back(), "ms");
  run.metric("position_first", position.front());
  run.metric("position_last", position.back());
  run.metric("step_growth", ms.back() / ms.front(), "x");
}

//! @output position
//! @plot position One naive decode step, against the position of the token it makes.
//!
//! At position {{position_first:.0f}} a step takes {{step_first:.2f}} ms, at position
//! {{position_last:.0f}} it takes {{step_last:.1f}} ms: {{step_growth:.1f}} times as much, for a
//! token that is worth no more.
//! @expect step_growth > 4
//!
//! @predict Which of the numbers computed at step $t$ were computed at step $t - 1$ already, with
//! exactly the same result?
//! @answer All of them, except those of the newest token: under the causal mask nothing that comes
//! later can change an earlier token's vectors. Of those, later tokens only ever look at the keys
//! and values. Keeping them is chapter 02.

//! ## The whole program
//!
//! The built-in model is small enough to come with the source: `--model smollm2` or
//! `--model PATH` runs the same chapter on a real one.

void check_answer(Run& run, const Model& model, const GenerateResult& result) {
  run.section("check");
  const bool finite = !result.ids.empty() && result.metrics.tpot_ms() >= 0;
  run.check(finite, "the model wrote something");
  if (model.config().name == "decodelab-target")
    run.check(result.text.find("4") != std::string::npos, "2+2 is 4");
}

void chapter(Run& run) {
  const auto device = make_device(run.device());
  run.measured_on(device->description());
  const auto model = load_model(run.model(), *device);
  const std::string prompt = "What is 2+2?";
  show_floats(run);
  show_tokens(run, *model, prompt);
  show_embedding(run);
  show_rms_norm(run);
  show_attention(run);
  show_rope(run);
  show_mlp(run);
  show_sampling(run);
  const GenerateResult result = show_answer(run, *model, prompt);
  show_roofline(run, *model, show_machine(run, *model));
  show_position(run, *model);
  check_answer(run, *model, result);
}

int main(int argc, char** argv) {
  return run_chapter("01_naive_decode", chapter, argc, argv);
}

//! @output check
//!
//! ## What a production engine does differently
//!
//! - It never decodes like this: every engine keeps keys and values (chapter 02). The naive loop
//!   survives in test suites, as the definition that faster paths are compared with.
//! - It runs many requests in one pass, because one token leaves the arithmetic units idle
//!   (chapter 03), and reports TTFT and TPOT as percentiles over requests, with the same
//!   definitions as here.
//! - It stores weights in 16, 8 or 4 bits, because decode time is bytes (chapters 07 to 09).
//! - It samples on the GPU, over the whole batch at once.
//!
//! ## Further reading
//!
//! - Vaswani et al. 2017, *Attention Is All You Need*, arXiv:1706.03762, section 3.
//! - Touvron et al. 2023, *LLaMA*, arXiv:2302.13971, section 2.2: the changes that made this
//!   block.
//! - Williams, Waterman, Patterson 2009, *Roofline*, Communications of the ACM 52(4), sections 3
//!   and 4.
//! - Pope et al. 2022, *Efficiently Scaling Transformer Inference*, arXiv:2211.05102, section 2:
//!   the costs of prefill and decode.
//! - Holtzman et al. 2020, *The Curious Case of Neural Text Degeneration*, arXiv:1904.09751,
//!   section 3: why not always greedy, and top-p.
