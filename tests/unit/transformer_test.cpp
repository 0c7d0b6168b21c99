// The forward pass against the formulas, and every way to feed it against every other.
#include <cmath>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/decode/generate.hpp"
#include "lab/decode/no_kv_cache.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "support/catch.hpp"
#include "support/textbook_llama.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::unique_ptr<Model> load_gguf(const TinyModel& m) {
  const TempFolder folder;
  tiny_gguf(m).write(folder / "m.gguf");
  return load_model((folder / "m.gguf").string());
}

std::unique_ptr<Model> load_hf(const TinyModel& m, std::size_t shards = 1) {
  const TempFolder folder;
  write_tiny_hf(m, folder / "hf", shards);
  return load_model((folder / "hf").string());
}

std::vector<std::int32_t> random_ids(std::int64_t n, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  for (auto& id : ids) id = static_cast<std::int32_t>(rng.below(270));
  return ids;
}

std::vector<float> last_logits(HostView<const float, 2> logits) {
  const auto row = logits[logits.shape[0] - 1];
  return {row.data, row.data + row.shape[0]};
}

std::vector<float> naive_logits(Model& model, const std::vector<std::int32_t>& ids) {
  NoKvCache nothing;
  return last_logits(model.transformer().forward(single_sequence(0, ids), nothing));
}

template <class A, class B>
double worst_difference(const A& a, const B& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double(a[i]) - double(b[i]));
    if (std::isnan(d) || d > worst) worst = d;
  }
  return worst;
}

std::vector<std::int32_t> greedy(Model& model, const std::vector<std::int32_t>& prompt,
                                 std::int64_t n) {
  GenerateOptions o;
  o.max_tokens = n;
  o.ignore_end = true;
  return generate_naive(model, prompt, o).ids;
}

}  // namespace

TEST_CASE(
    "logits are the formulas', in both RoPE layouts, tied and untied, at every length") {
  const bool tied = GENERATE(true, false);
  const TinyModel tiny = make_tiny_model(tiny_config(), {.seed = 3, .tied = tied});
  const TextbookLlama textbook(tiny);
  const auto gguf = load_gguf(tiny), hf = load_hf(tiny), sharded = load_hf(tiny, 3);
  for (const std::int64_t n : {1, 2, 3, 9, 33}) {
    const auto ids = random_ids(n, std::uint64_t(n));
    const auto expected = textbook.logits(ids);
    CAPTURE(tied, n);
    CHECK(worst_difference(naive_logits(*gguf, ids), expected) <= 2e-5);
    CHECK(worst_difference(naive_logits(*hf, ids), expected) <= 2e-5);
    CHECK(worst_difference(naive_logits(*sharded, ids), expected) <= 2e-5);
  }
}

TEST_CASE("head counts: MHA, GQA, MQA, 16-bit weights, llama-3 RoPE scaling") {
  Config c = tiny_config();
  TinyOptions o{.seed = 5};
  SECTION("MHA") { c.n_kv_heads = 8; }
  SECTION("MQA") { c.n_kv_heads = 1; }
  SECTION("9 heads on 3") {
    c.n_heads = 9;
    c.n_kv_heads = 3;
  }
  SECTION("head_dim 64") { c.head_dim = 64; }
  SECTION("f16") { o.dtype = DType::f16; }
  SECTION("bf16") { o.dtype = DType::bf16; }
  SECTION("llama-3 scaling") {
    o.llama3 = Llama3RopeScaling{.factor = 4, .original_context = 64};
  }
  SECTION("one layer") { c.n_layers = 1; }
  const TinyModel tiny = make_tiny_model(c, o);
  const auto ids = random_ids(41, 8);
  const auto expected = TextbookLlama(tiny).logits(ids);
  CHECK(worst_difference(naive_logits(*load_gguf(tiny), ids), expected) <= 5e-5);
  CHECK(worst_difference(naive_logits(*load_hf(tiny), ids), expected) <= 5e-5);
}

TEST_CASE("GGUF and safetensors of the same weights give the same tokens") {
  const TinyModel tiny = make_tiny_model(tiny_config(), {.seed = 11});
  const auto prompt = random_ids(5, 1);
  CHECK(greedy(*load_gguf(tiny), prompt, 60) == greedy(*load_hf(tiny), prompt, 60));
}

TEST_CASE(
    "equivalence ladder: the KV cache changes no token, whatever the chunk and prompt") {
  const auto model = load_gguf(make_tiny_model(tiny_config(), {.seed = 21}));
  for (int round = 0; round < 12; ++round) {
    const std::int64_t prompt_length = 1 + 5 * round;
    const auto prompt = random_ids(prompt_length, std::uint64_t(100 + round));
    const auto expected = greedy(*model, prompt, 24);
    for (const std::int64_t chunk : {1, 2, 7, 64, 1000}) {
      GenerateOptions o;
      o.max_tokens = 24;
      o.ignore_end = true;
      o.prefill_chunk = chunk;
      const auto cache = make_contiguous_cache(
          model->config(), 1, positions_needed(model->config(), prompt_length, 24));
      CAPTURE(prompt_length, chunk);
      CHECK(generate(*model, *cache, prompt, o).ids == expected);
    }
  }
}

TEST_CASE("a batch of sequences of different lengths gives each its solo logits") {
  const auto model = load_gguf(make_tiny_model(tiny_config(), {.seed = 31}));
  const std::vector<std::vector<std::int32_t>> texts{random_ids(7, 1), random_ids(1, 2),
                                                     random_ids(19, 3)};
  const auto cache = make_contiguous_cache(model->config(), 4, 32);
  ForwardBatch prefill;  // sequences in any order, one of them unused
  prefill.add(3, 0, texts[0]);
  prefill.add(0, 0, texts[1]);
  prefill.add(2, 0, texts[2]);
  const auto first = model->transformer().forward(prefill, *cache);
  REQUIRE(first.shape[0] == 3);
  std::vector<std::vector<float>> got_first;  // the view ends with the next forward pass
  for (std::int64_t i = 0; i < 3; ++i)
    got_first.emplace_back(first[i].data, first[i].data + first.shape[1]);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(worst_difference(got_first[i], naive_logits(*model, texts[i])) <= 1e-5);
  // A mixed batch: two decodes and, between them, a longer piece.
  const std::vector<std::int32_t> more{5, 6, 7};
  ForwardBatch mixed;
  mixed.add(2, 19, {more.data(), 1});
  mixed.add(3, 7, more);
  mixed.add(0, 1, {more.data(), 1});
  const auto second = model->transformer().forward(mixed, *cache);
  auto text = texts[0];
  text.insert(text.end(), more.begin(), more.end());
  const auto row = second[1];
  const std::vector<float> got(row.data, row.data + row.shape[0]);
  CHECK(worst_difference(got, naive_logits(*model, text)) <= 1e-5);
}

TEST_CASE("all logits of a batch are those of its prefixes") {
  const auto model = load_gguf(make_tiny_model());
  const auto ids = random_ids(9, 4);
  ForwardBatch batch;
  batch.add(0, 0, ids, true);
  NoKvCache nothing;
  const auto logits = model->transformer().forward(batch, nothing);
  REQUIRE(logits.shape[0] == 9);
  std::vector<std::vector<float>> rows;
  for (std::int64_t t = 0; t < 9; ++t)
    rows.emplace_back(logits[t].data, logits[t].data + logits.shape[1]);
  for (std::size_t t = 0; t < 9; ++t) {
    const std::vector<std::int32_t> prefix(ids.begin(),
                                           ids.begin() + std::ptrdiff_t(t) + 1);
    CHECK(worst_difference(rows[t], naive_logits(*model, prefix)) <= 1e-5);
  }
}

TEST_CASE("chunks without logits store their keys and values and give no row") {
  const auto model = load_gguf(make_tiny_model());
  const auto ids = random_ids(9, 4), other = random_ids(3, 5);
  const std::span text(ids);
  const auto cache = make_contiguous_cache(model->config(), 2, 16);
  ForwardBatch chunk;
  chunk.add_without_logits(0, 0, text.first(5));
  CHECK(chunk.logit_tokens().empty());
  CHECK(model->transformer().forward(chunk, *cache).shape[0] == 0);
  ForwardBatch mixed;  // the one row is not that of the first segment
  mixed.add_without_logits(0, 5, text.subspan(5, 2));
  mixed.add(1, 0, other);
  const auto one = model->transformer().forward(mixed, *cache);
  REQUIRE(one.shape[0] == 1);
  const std::vector<float> row(one.data, one.data + one.shape[1]);
  CHECK(worst_difference(row, naive_logits(*model, other)) <= 1e-5);
  ForwardBatch rest;
  rest.add(0, 7, text.subspan(7));
  const auto last = model->transformer().forward(rest, *cache);
  const std::vector<float> end(last.data, last.data + last.shape[1]);
  CHECK(worst_difference(end, naive_logits(*model, ids)) <= 1e-5);
}

TEST_CASE("truncating the cache and going on is going on from there") {
  const auto model = load_gguf(make_tiny_model(tiny_config(), {.seed = 41}));
  const auto kept = random_ids(6, 1), wrong = random_ids(5, 2), right = random_ids(4, 3);
  const auto cache = make_contiguous_cache(model->config(), 1, 32);
  model->transformer().forward(single_sequence(0, kept), *cache);
  model->transformer().forward(single_sequence(6, wrong), *cache);
  cache->truncate(0, 6);
  const auto got =
      last_logits(model->transformer().forward(single_sequence(6, right), *cache));
  auto text = kept;
  text.insert(text.end(), right.begin(), right.end());
  CHECK(worst_difference(got, naive_logits(*model, text)) <= 1e-5);
}

TEST_CASE("16-bit caches stay near, and are half as large") {
  const auto model = load_gguf(make_tiny_model());
  const auto ids = random_ids(30, 9);
  const auto f32 = make_contiguous_cache(model->config(), 1, 30);
  const auto expected = naive_logits(*model, ids);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto cache = make_contiguous_cache(model->config(), 1, 30, dtype);
    model->transformer().forward(single_sequence(0, std::span(ids).first(29)), *cache);
    const auto got = last_logits(
        model->transformer().forward(single_sequence(29, std::span(ids).last(1)), *cache));
    const double worst = worst_difference(got, expected);
    CHECK(worst <= (dtype == DType::f16 ? 4e-3 : 4e-2));
    CHECK(worst > 0);  // it really is rounded
    CHECK(cache->bytes() * 2 == f32->bytes());
  }
  CHECK(f32->bytes() == 30 * kv_bytes_per_token(model->config(), 4));
  CHECK(kv_bytes_per_token(model->config(), 4) == 2 * 2 * 2 * 10 * 4);
}

TEST_CASE("threads change nothing") {
  const auto model = load_gguf(make_tiny_model());
  const auto ids = random_ids(50, 6);
  const auto alone = naive_logits(*model, ids);
  set_n_threads(2);
  const auto shared = naive_logits(*model, ids);
  set_n_threads(1);
  CHECK(alone == shared);
}

TEST_CASE("what the cache and the batch refuse, and that a refusal changes nothing") {
  const auto model = load_gguf(make_tiny_model());
  Transformer& t = model->transformer();
  const auto ids = random_ids(8, 1);
  const auto cache = make_contiguous_cache(model->config(), 2, 8);
  CHECK_THROWS_WITH(t.forward(single_sequence(1, ids), *cache),
                    ContainsSubstring("goes on at position 1 but 0 positions are stored"));
  t.forward(single_sequence(0, std::span(ids).first(6)), *cache);
  CHECK_THROWS_WITH(t.forward(single_sequence(6, std::span(ids).first(3)), *cache),
                    ContainsSubstring("needs 9 positions but the cache holds 8"));
  CHECK(cache->length(0) == 6);
  ForwardBatch good_and_bad;  // the first sequence fits, the second does not
  good_and_bad.add(0, 6, {ids.data(), 1});
  good_and_bad.add(1, 5, {ids.data(), 1});
  CHECK_THROWS_AS(t.forward(good_and_bad, *cache), Error);
  CHECK(cache->length(0) == 6);
  ForwardBatch unknown;
  unknown.add(2, 0, ids);
  CHECK_THROWS_WITH(t.forward(unknown, *cache), ContainsSubstring("not in a cache of 2"));
  CHECK_THROWS_WITH(cache->truncate(0, 7), ContainsSubstring("it stores 6"));
  CHECK_THROWS_WITH(make_contiguous_cache(model->config(), 0, 8),
                    ContainsSubstring("at least 1"));
  CHECK_THROWS_WITH(make_contiguous_cache(model->config(), 1, 8, DType::q8_0),
                    ContainsSubstring("choose f32, f16 or bf16"));
  NoKvCache nothing;
  CHECK_THROWS_WITH(t.forward(single_sequence(3, ids), nothing),
                    ContainsSubstring("without a cache"));
  CHECK_THROWS_WITH(t.forward(ForwardBatch(), nothing),
                    ContainsSubstring("batch is empty"));
  const std::vector<std::int32_t> outside{272}, negative{-1};
  CHECK_THROWS_WITH(t.forward(single_sequence(0, outside), nothing),
                    ContainsSubstring("token id 272 is outside the vocabulary of 272"));
  CHECK_THROWS_AS(t.forward(single_sequence(0, negative), nothing), Error);
  CHECK_THROWS_WITH(t.forward(single_sequence(0, random_ids(129, 1)), nothing),
                    ContainsSubstring("context holds 128"));
  ForwardBatch batch;
  CHECK_THROWS_WITH(batch.add(0, 0, {}), ContainsSubstring("no tokens"));
  CHECK_THROWS_WITH(batch.add(0, -1, ids), ContainsSubstring("position -1"));
  batch.add(0, 0, ids);
  CHECK_THROWS_WITH(batch.add(0, 8, ids), ContainsSubstring("added twice"));
}

TEST_CASE("generate refuses what it cannot do") {
  const auto model = load_gguf(make_tiny_model());
  const auto cache = make_contiguous_cache(model->config(), 1, 4);
  CHECK_THROWS_WITH(generate(*model, *cache, {}, {}), ContainsSubstring("prompt is empty"));
  CHECK_THROWS_WITH(generate(*model, *cache, random_ids(129, 1), {}),
                    ContainsSubstring("129 tokens but the model's context holds 128"));
  CHECK_THROWS_WITH(generate(*model, *cache, random_ids(5, 1), {}),
                    ContainsSubstring("needs 5 positions but the cache holds 4"));
  GenerateOptions none;
  none.max_tokens = 0;
  CHECK_THROWS_WITH(generate_naive(*model, random_ids(5, 1), none),
                    ContainsSubstring("max-tokens is 0"));
  GenerateOptions no_chunk;
  no_chunk.prefill_chunk = 0;
  CHECK_THROWS_WITH(generate_naive(*model, random_ids(5, 1), no_chunk),
                    ContainsSubstring("prefill chunk is 0"));
}

TEST_CASE("generation stops at the end of the context, and never at a padding row's id") {
  const auto model = load_gguf(make_tiny_model());
  GenerateOptions o;
  o.max_tokens = 1000;
  o.ignore_end = true;
  const auto prompt = random_ids(100, 2);
  const auto cache = make_contiguous_cache(model->config(), 1,
                                           positions_needed(model->config(), 100, 1000));
  CHECK(cache->capacity() == 128);
  const GenerateResult r = generate(*model, *cache, prompt, o);
  CHECK(r.ids.size() == 29);  // positions 100 to 127, and one token after the last
  CHECK(r.finish_reason == FinishReason::length);
  for (const std::int32_t id : r.ids) CHECK(id < model->tokenizer().size());
}

TEST_CASE("the cost of a batch is counted from its shapes") {
  const auto model = load_gguf(make_tiny_model());
  // Per layer: q 80x48, k and v 20x48, o 48x80, three of 80x48; twice; output 272x48 once.
  const double weights = 2 * (80 * 48 * 2 + 20 * 48 * 2 + 3 * 80 * 48);
  const auto ids = random_ids(3, 1);
  const ForwardCost first = model->transformer().cost(single_sequence(0, ids));
  CHECK(first.flops == 2 * weights * 3 + 2 * 272 * 48 + 4 * 2 * 80 * (1 + 2 + 3));
  const ForwardCost later = model->transformer().cost(single_sequence(10, ids));
  CHECK(later.flops - first.flops == 4 * 2 * 80 * 30);
  CHECK(later.kv_bytes == 2 * 2 * 2 * 10 * 4 * 13);
}
