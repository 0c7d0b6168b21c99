// decodelab perplexity: how well a model predicts a text, and what 8-bit activations
// change.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lab/core/error.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "options.hpp"

namespace lab::tools {
namespace {

/// Sums over all predicted tokens.
struct Sums {
  std::int64_t tokens = 0, same_top = 0;
  double nll = 0, exact_nll = 0, kl = 0, largest_kl = 0;
};

/// log softmax of one row of logits, in double: differences of 1e-4 must survive.
std::vector<double> log_probabilities(const float* logits, std::int64_t n) {
  const double top = *std::max_element(logits, logits + n);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(logits[i] - top);
  const double log_sum = top + std::log(sum);
  std::vector<double> out(std::size_t(n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) out[std::size_t(i)] = logits[i] - log_sum;
  return out;
}

/// The logits of every token of a window, computed from position 0.
std::vector<float> window_logits(Transformer& transformer,
                                 std::span<const std::int32_t> window) {
  const auto cache = make_contiguous_cache(transformer, 1, std::ssize(window));
  ForwardBatch batch;
  batch.add(0, 0, window, true);
  const auto logits = transformer.forward(batch, *cache);
  return {logits.data, logits.data + logits.size()};
}

/// Adds what `logits` say about each token of the window but the first, against `exact`.
void add_window(Sums& sums, std::span<const std::int32_t> window,
                const std::vector<float>& logits, const std::vector<float>& exact) {
  const std::int64_t V = std::ssize(logits) / std::ssize(window);
  for (std::size_t t = 0; t + 1 < window.size(); ++t) {
    const auto q = log_probabilities(&logits[t * std::size_t(V)], V);
    const auto p = log_probabilities(&exact[t * std::size_t(V)], V);
    const auto next = std::size_t(window[t + 1]);
    double kl = 0;
    for (std::size_t i = 0; i < p.size(); ++i) kl += std::exp(p[i]) * (p[i] - q[i]);
    sums.nll -= q[next];
    sums.exact_nll -= p[next];
    sums.kl += kl;
    sums.largest_kl = std::max(sums.largest_kl, kl);
    sums.same_top += std::max_element(p.begin(), p.end()) - p.begin() ==
                     std::max_element(q.begin(), q.end()) - q.begin();
    ++sums.tokens;
  }
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  LAB_CHECK(in.good(), "cannot read the text file '{}'; check the path", path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void print_sums(const Sums& s, const LoadedModel& loaded, bool json) {
  const double n = double(s.tokens), perplexity = std::exp(s.nll / n),
               exact = std::exp(s.exact_nll / n);
  if (json) {
    const nlohmann::ordered_json out{{"tokens", s.tokens},
                                     {"activations", name(loaded.activations)},
                                     {"perplexity", perplexity},
                                     {"perplexity_f32", exact},
                                     {"mean_kl", s.kl / n},
                                     {"largest_kl", s.largest_kl},
                                     {"same_top", double(s.same_top) / n}};
    fmt::print("{}\n", out.dump());
    return;
  }
  fmt::print("{} tokens, {} activations\n", s.tokens, name(loaded.activations));
  fmt::print("perplexity   {:.4f}\n", perplexity);
  if (loaded.activations == Activations::f32) return;
  fmt::print("       f32   {:.4f}  ({:+.3f} %)\n", exact, 100 * (perplexity / exact - 1));
  fmt::print("KL to f32    {:.2e} mean, {:.2e} largest\n", s.kl / n, s.largest_kl);
  fmt::print("same top     {:.2f} %\n", 100.0 * double(s.same_top) / n);
}

}  // namespace

int perplexity(int argc, char** argv) {
  cxxopts::Options options(
      "decodelab perplexity",
      "Reads a text in windows and measures how well the model predicts each next token. "
      "With int8 activations it also compares every distribution with the exact one (f32 "
      "activations): mean KL divergence in nats, and how often the likeliest token is the "
      "same.");
  add_common_options(options);
  add_device_options(options, "auto");
  options.add_options()                                       //
      ("text", "a text file", cxxopts::value<std::string>())  //
      ("window", "tokens that are read together, each window from position 0",
       cxxopts::value<std::int64_t>()->default_value("512"))  //
      ("json",
       "one JSON object: {tokens, activations, perplexity, perplexity_f32, mean_kl, "
       "largest_kl, same_top}");
  const auto given = parse(options, argc, argv);
  if (!given) return 0;
  if (given->count("text") == 0) throw UsageError("give the text with --text FILE");
  const auto window = (*given)["window"].as<std::int64_t>();
  if (window < 2)
    throw UsageError(fmt::format("--window is {}; give a number >= 2", window));
  apply_threads(*given);
  const std::string text = read_text((*given)["text"].as<std::string>());
  const LoadedModel loaded = load(*given);
  LAB_CHECK(window <= loaded.model->config().context_length,
            "--window {} is beyond the model's context of {} tokens; give fewer", window,
            loaded.model->config().context_length);
  const auto ids = prompt_ids(loaded.model->tokenizer(), text);
  LAB_CHECK(ids.size() >= 2, "the text has {} token(s); at least 2 are needed", ids.size());
  std::unique_ptr<Model> exact;
  if (loaded.activations != Activations::f32)
    exact = load_model((*given)["model"].as<std::string>());
  Sums sums;
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += std::size_t(window)) {
    const auto part = std::span(ids).subspan(
        begin, std::min<std::size_t>(std::size_t(window), ids.size() - begin));
    const auto logits = window_logits(loaded.model->transformer(), part);
    add_window(sums, part, logits,
               exact ? window_logits(exact->transformer(), part) : logits);
  }
  print_sums(sums, loaded, given->count("json") > 0);
  return 0;
}

}  // namespace lab::tools
