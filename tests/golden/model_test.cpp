// The built-in models against an independent implementation: PyTorch, in f32, on the
// weights of the committed files (tools/train/golden.py).
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lab/decode/generate.hpp"
#include "lab/decode/no_kv_cache.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "support/catch.hpp"

using namespace lab;

namespace {

nlohmann::json golden_cases(const std::string& model) {
  std::ifstream in(std::string(LAB_MODELS) + "/golden/" + model + ".json");
  REQUIRE(in.good());
  return nlohmann::json::parse(in).at("cases");
}

double largest_difference(HostView<const float, 2> logits,
                          const std::vector<float>& expected) {
  REQUIRE(logits.shape[1] == std::ssize(expected));
  const auto row = logits[logits.shape[0] - 1];
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = std::abs(double(row.data[i]) - expected[i]);
    if (std::isnan(d) || d > worst) worst = d;  // a NaN stays
  }
  return worst;
}

}  // namespace

TEST_CASE("logits of the built-in models are PyTorch's") {
  const std::string name = GENERATE("target", "draft");
  const auto model = load_model(std::string(LAB_MODELS) + "/" + name + ".gguf");
  for (const auto& c : golden_cases(name)) {
    const auto ids = c.at("ids").get<std::vector<std::int32_t>>();
    const auto expected = c.at("logits").get<std::vector<float>>();
    CAPTURE(name, ids.size());
    NoKvCache nothing;
    CHECK(largest_difference(model->transformer().forward(single_sequence(0, ids), nothing),
                             expected) <= 2e-4);
    // The same text in pieces of 7, through the cache.
    const auto cache = make_contiguous_cache(model->config(), 1, std::ssize(ids));
    HostView<const float, 2> logits;
    for (std::size_t begin = 0; begin < ids.size(); begin += 7)
      logits = model->transformer().forward(
          single_sequence(
              std::int64_t(begin),
              std::span(ids).subspan(begin, std::min<std::size_t>(7, ids.size() - begin))),
          *cache);
    CHECK(largest_difference(logits, expected) <= 2e-4);
  }
}

TEST_CASE("greedy tokens of the built-in models are PyTorch's") {
  const std::string name = GENERATE("target", "draft");
  const auto model = load_model(std::string(LAB_MODELS) + "/" + name + ".gguf");
  for (const auto& c : golden_cases(name)) {
    const auto ids = c.at("ids").get<std::vector<std::int32_t>>();
    const auto greedy = c.at("greedy").get<std::vector<std::int32_t>>();
    CAPTURE(name, ids.size());
    GenerateOptions options;
    options.max_tokens = std::ssize(greedy);
    options.ignore_end = true;
    const auto cache = make_contiguous_cache(
        model->config(), 1,
        positions_needed(model->config(), std::ssize(ids), options.max_tokens));
    CHECK(generate(*model, *cache, ids, options).ids == greedy);
  }
}

TEST_CASE("the target answers sums and its answer ends by itself") {
  const auto model = load_model(std::string(LAB_MODELS) + "/target.gguf");
  const auto ids = prompt_ids(model->tokenizer(), "What is 2+2?");
  const auto cache = make_contiguous_cache(model->config(), 1, 64);
  GenerateOptions options;
  options.max_tokens = 32;
  const GenerateResult r = generate(*model, *cache, ids, options);
  CHECK_THAT(r.text, ContainsSubstring("4"));
  CHECK(r.finish_reason == FinishReason::stop);
  CHECK_THAT(r.text, !ContainsSubstring("<|end|>"));
}
