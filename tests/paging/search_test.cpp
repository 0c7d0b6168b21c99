// Several answers to one prompt: parallel sampling and beam search, on shared blocks.
#include "lab/decode/beam_search.hpp"
#include "lab/decode/no_kv_cache.hpp"
#include "lab/decode/parallel_sampling.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "lab/paging/paged_sequences.hpp"
#include "support.hpp"
#include "support/tiny_model.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::unique_ptr<Model> tiny_model(std::uint64_t seed) {
  const TempFolder folder;
  tiny_gguf(make_tiny_model(tiny_config(), {.seed = seed})).write(folder / "m.gguf");
  return load_model((folder / "m.gguf").string());
}

BlockManagerConfig blocks(std::int64_t size, ForkMode mode, std::int64_t n = 200) {
  BlockManagerConfig c;
  c.n_blocks = n;
  c.block_size = size;
  c.fork_mode = mode;
  return c;
}

/// Log probabilities after `text`, from a pass over all of it.
std::vector<double> log_softmax(Model& model, const std::vector<std::int32_t>& text) {
  NoKvCache nothing(model.device());
  const auto logits = model.transformer().forward(single_sequence(0, text), nothing);
  std::vector<double> p(logits.data, logits.data + model.tokenizer().size());
  double sum = 0;
  const double largest = *std::max_element(p.begin(), p.end());
  for (const double x : p) sum += std::exp(x - largest);
  for (double& x : p) x -= largest + std::log(sum);
  return p;
}

/// Beam search as its definition, without caches and without sharing.
std::vector<Beam> textbook(Model& model, const std::vector<std::int32_t>& prompt,
                           const BeamOptions& o) {
  std::vector<Beam> live{{}}, ended;
  const auto add = [&](Beam b) {
    b.score = b.log_probability / std::pow(double(b.ids.size()), o.length_penalty);
    ended.push_back(b);
    std::stable_sort(ended.begin(), ended.end(),
                     [](const Beam& x, const Beam& y) { return x.score > y.score; });
    if (std::ssize(ended) > o.beam_width) ended.pop_back();
  };
  for (std::int64_t n = 1; n <= o.max_tokens; ++n) {
    std::vector<Beam> all;
    for (const Beam& b : live) {
      auto text = prompt;
      text.insert(text.end(), b.ids.begin(), b.ids.end());
      const auto p = log_softmax(model, text);
      for (std::size_t id = 0; id < p.size(); ++id) {
        all.push_back(b);
        all.back().ids.push_back(std::int32_t(id));
        all.back().log_probability += p[id];
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Beam& x, const Beam& y) {
      return x.log_probability > y.log_probability;
    });
    live.clear();
    for (std::size_t rank = 0; std::ssize(live) < o.beam_width; ++rank) {
      const bool end = !o.ignore_end && model.tokenizer().is_end(all[rank].ids.back());
      if (!end) live.push_back(all[rank]);
      if (end && std::int64_t(rank) < o.beam_width) add(all[rank]);
    }
    if (n == o.max_tokens) {
      for (const Beam& b : live) add(b);
    } else if (std::ssize(ended) == o.beam_width) {
      double best = -INFINITY;
      for (const Beam& b : live)
        best = std::max(best, b.log_probability / std::pow(double(n), o.length_penalty));
      if (o.early_stopping || best <= ended.back().score) break;
    }
  }
  return ended;
}

const std::vector<std::int32_t> kPrompt = {5, 80, 33, 120, 7, 19, 61};

}  // namespace

TEST_CASE("sample i of n is what generate() draws alone, however blocks are shared") {
  const auto model = tiny_model(71);
  GenerateOptions o;
  o.max_tokens = 14;
  o.sampling = {.temperature = 1, .top_k = 50, .seed = 3};
  for (const ForkMode mode : {ForkMode::copy_on_write, ForkMode::append_only})
    for (const std::int64_t size : {1, 3, 4, 16}) {
      PagedSequences store(model->transformer(), blocks(size, mode));
      const auto samples = generate_samples(*model, store, kPrompt, o, 5);
      REQUIRE(samples.size() == 5);
      for (std::int64_t i = 0; i < 5; ++i) {
        GenerateOptions own = o;
        own.sampling.seed = sample_seed(3, i);
        const auto cache = make_contiguous_cache(model->transformer(), 1, 40);
        const GenerateResult alone = generate(*model, *cache, kPrompt, own);
        const GenerateResult& sample = samples[std::size_t(i)];
        REQUIRE(sample.ids == alone.ids);
        REQUIRE(sample.text == alone.text);
        REQUIRE(sample.finish_reason == alone.finish_reason);
      }
      CHECK(samples[0].ids != samples[1].ids);
      CHECK(store.manager().n_sequences() == 0);
      CHECK(store.manager().n_free() == store.manager().n_blocks());
      const BlockUsage peak = store.take_peak();
      if (size == 1 || size == 3) CHECK(peak.saving() > 0.2);  // 7 of up to 21 positions
      CHECK((store.n_copied() > 0) == (mode == ForkMode::copy_on_write && 7 % size != 0));
    }
}

TEST_CASE("a beam of width 1 is greedy decoding") {
  const auto model = tiny_model(72);
  Rng rng(4);
  for (int i = 0; i < 6; ++i) {
    std::vector<std::int32_t> prompt;
    for (std::int64_t n = 1 + rng.below(20); n > 0; --n)
      prompt.push_back(std::int32_t(rng.below(270)));
    GenerateOptions o;
    o.max_tokens = 12;
    PagedSequences store(model->transformer(), blocks(1 + rng.below(8), ForkMode(i % 2)));
    const auto beams =
        beam_search(*model, store, prompt, {.beam_width = 1, .max_tokens = 12});
    REQUIRE(beams.size() == 1);
    REQUIRE(beams[0].ids == generate_naive(*model, prompt, o).ids);
  }
}

TEST_CASE("beam search is its definition, with and without early stopping") {
  const auto model = tiny_model(73);
  std::int64_t ended_early = 0;
  for (const std::int64_t width : {2, 3, 5})
    for (const double penalty : {0.0, 1.0, 2.0})
      for (const bool early : {true, false}) {
        CAPTURE(width, penalty, early);
        const BeamOptions o{.beam_width = width,
                            .max_tokens = 6,
                            .length_penalty = penalty,
                            .early_stopping = early};
        PagedSequences store(
            model->transformer(),
            blocks(3, early ? ForkMode::copy_on_write : ForkMode::append_only));
        const auto beams = beam_search(*model, store, kPrompt, o);
        const auto expected = textbook(*model, kPrompt, o);
        REQUIRE(beams.size() == expected.size());
        for (std::size_t i = 0; i < beams.size(); ++i) {
          REQUIRE(beams[i].ids == expected[i].ids);
          REQUIRE(std::abs(beams[i].score - expected[i].score) < 1e-4);
          ended_early += beams[i].finish_reason == FinishReason::stop;
        }
        CHECK(std::is_sorted(beams.begin(), beams.end(), [](const Beam& a, const Beam& b) {
          return a.score > b.score;
        }));
        CHECK(store.manager().n_sequences() == 0);
        CHECK(store.manager().n_free() == store.manager().n_blocks());
      }
  INFO("answers that ended with an end token: " << ended_early);
}

TEST_CASE("a search that runs out of blocks says so") {
  const auto model = tiny_model(74);
  PagedSequences store(model->transformer(), blocks(2, ForkMode::copy_on_write, 5));
  CHECK(message_of([&] {
          beam_search(*model, store, kPrompt,
                      {.beam_width = 4, .max_tokens = 9, .ignore_end = true});
        }).find("make the cache larger") != std::string::npos);
  PagedSequences tiny(model->transformer(), blocks(2, ForkMode::copy_on_write, 3));
  CHECK(message_of([&] { generate_samples(*model, tiny, kPrompt, {}, 2); }) ==
        "paged KV cache: 7 positions need more than the 3 free of 3 blocks of 2; make the "
        "cache larger");
}

TEST_CASE("errors of sampling and beam search") {
  const auto model = tiny_model(75);
  PagedSequences store(model->transformer(), blocks(4, ForkMode::copy_on_write));
  const auto beams = [&](const BeamOptions& o) {
    return message_of([&] { beam_search(*model, store, kPrompt, o); });
  };
  CHECK(beams({.beam_width = 0}) == "beam_width is 0; give a number >= 1");
  CHECK(beams({.max_tokens = 0}) == "max-tokens is 0; give a number >= 1");
  CHECK(beams({.length_penalty = NAN}) == "length_penalty is nan; give a finite number");
  CHECK(beams({.prefill_chunk = 0}) == "the prefill chunk is 0 tokens; give a number >= 1");
  CHECK(message_of([&] { generate_samples(*model, store, kPrompt, {}, 0); }) ==
        "n is 0; ask for at least one answer");
  CHECK(!message_of([&] { generate_samples(*model, store, {}, {}, 1); }).empty());
}
