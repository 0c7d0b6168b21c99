#include "answers.hpp"

#include <fmt/format.h>

#include "lab/core/error.hpp"
#include "lab/decode/beam_search.hpp"
#include "lab/decode/parallel_sampling.hpp"
#include "lab/paging/paged_sequences.hpp"

namespace lab::tools {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t width_of(const cxxopts::ParseResult& given) {
  return std::max(given["samples"].as<std::int64_t>(), given["beams"].as<std::int64_t>());
}

/// Blocks for all answers, even if they share none but the prompt's.
BlockManagerConfig blocks_for(const Config& config, std::int64_t prompt,
                              std::int64_t answer, std::int64_t width) {
  BlockManagerConfig blocks;
  const std::int64_t positions = positions_needed(config, prompt, answer);
  blocks.n_blocks = (width + 1) * (positions / blocks.block_size + 2);
  return blocks;
}

Json samples(Model& model, SequenceStore& store, const std::vector<std::int32_t>& prompt,
             const GenerateOptions& options, std::int64_t n) {
  Json answers = Json::array();
  for (const GenerateResult& r : generate_samples(model, store, prompt, options, n))
    answers.push_back(
        {{"ids", r.ids}, {"text", r.text}, {"finish_reason", name(r.finish_reason)}});
  return answers;
}

Json beams(Model& model, SequenceStore& store, const std::vector<std::int32_t>& prompt,
           const GenerateOptions& options, const cxxopts::ParseResult& given) {
  const BeamOptions o{.beam_width = given["beams"].as<std::int64_t>(),
                      .max_tokens = options.max_tokens,
                      .length_penalty = given["length-penalty"].as<double>(),
                      .early_stopping = true,
                      .ignore_end = options.ignore_end,
                      .prefill_chunk = options.prefill_chunk};
  Json answers = Json::array();
  for (const Beam& b : beam_search(model, store, prompt, o)) {
    std::vector<std::int32_t> shown = b.ids;
    if (!shown.empty() && model.tokenizer().is_end(shown.back())) shown.pop_back();
    answers.push_back({{"ids", b.ids},
                       {"text", model.tokenizer().decode(shown)},
                       {"finish_reason", name(b.finish_reason)},
                       {"log_probability", b.log_probability},
                       {"score", b.score}});
  }
  return answers;
}

}  // namespace

void add_answers_options(cxxopts::Options& options) {
  options.add_options()  //
      ("n,samples", "answers to draw independently; the prompt is computed once",
       cxxopts::value<std::int64_t>()->default_value("1"))  //
      ("beams", "width of a beam search; 0: none",
       cxxopts::value<std::int64_t>()->default_value("0"))  //
      ("length-penalty", "of a beam search: divides by the length to this power",
       cxxopts::value<double>()->default_value("1"));
}

bool several_answers(const cxxopts::ParseResult& given) {
  const auto n = given["samples"].as<std::int64_t>(),
             width = given["beams"].as<std::int64_t>();
  if (n < 1 || n > 1024)
    throw UsageError(fmt::format("--samples is {}; give 1 to 1024", n));
  if (width < 0 || width > 1024)
    throw UsageError(fmt::format("--beams is {}; give 0 to 1024", width));
  if (n > 1 && width > 0)
    throw UsageError(
        "--samples draws answers and --beams searches for one; give one of them");
  if (n == 1 && width == 0) return false;
  for (const char* other : {"naive", "stop"})
    if (given.count(other) > 0 && (width > 0 || std::string(other) == "naive"))
      throw UsageError(fmt::format("--{} does not go with {}", other,
                                   width > 0 ? "--beams" : "--samples"));
  if (width > 0 && given["temperature"].as<double>() > 0)
    throw UsageError("--beams draws nothing, so --temperature does not go with it");
  return true;
}

void print_answers(const cxxopts::ParseResult& given, const LoadedModel& loaded,
                   const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                   DType kv_dtype) {
  Model& model = *loaded.model;
  const std::int64_t width = width_of(given);
  PagedSequences store(
      model.transformer(),
      blocks_for(model.config(), std::ssize(prompt), options.max_tokens, width), kv_dtype);
  const Json answers = given["beams"].as<std::int64_t>() > 0
                           ? beams(model, store, prompt, options, given)
                           : samples(model, store, prompt, options, width);
  if (given.count("json") > 0) {
    const Json out{{"prompt_ids", prompt},
                   {"answers", answers},
                   {"device", loaded.device->name()},
                   {"activations", name(loaded.activations)}};
    fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Json& a = answers[i];
    fmt::print(
        "== {}{}\n{}\n", i + 1,
        a.contains("score") ? fmt::format(", score {:.3f}", a["score"].get<double>()) : "",
        a["text"].get<std::string>());
  }
}

}  // namespace lab::tools
