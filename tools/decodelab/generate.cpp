// decodelab generate: a prompt in, a model's continuation out.
#include "lab/decode/generate.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "answers.hpp"
#include "commands.hpp"
#include "lab/core/error.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "lab/model/chat_template.hpp"
#include "options.hpp"

namespace lab::tools {
namespace {

void add_options(cxxopts::Options& options) {
  add_common_options(options);
  add_device_options(options, "auto");
  add_answers_options(options);
  options.add_options()                                                                 //
      ("prompt", "the text to go on from", cxxopts::value<std::string>())               //
      ("prompt-file", "read the prompt from this file", cxxopts::value<std::string>())  //
      ("chat", "treat the prompt as a user's message, in the model's chat template")    //
      ("max-tokens", "tokens to generate at most",
       cxxopts::value<std::int64_t>()->default_value("128"))  //
      ("temperature", "0: the most likely token, always",
       cxxopts::value<double>()->default_value("0"))  //
      ("top-k", "draw from the k most likely tokens; 0: all",
       cxxopts::value<std::int64_t>()->default_value("0"))  //
      ("top-p", "draw from the smallest set with this probability",
       cxxopts::value<double>()->default_value("1"))  //
      ("min-p", "leave out tokens less likely than this share of the best",
       cxxopts::value<double>()->default_value("0"))  //
      ("repetition-penalty", "above 1: avoid tokens that occurred already",
       cxxopts::value<double>()->default_value("1"))  //
      ("seed", "seed of the random numbers",
       cxxopts::value<std::uint64_t>()->default_value("0"))  //
      ("stop", "end before this text (may be repeated)",
       cxxopts::value<std::vector<std::string>>())                                    //
      ("ignore-end", "go on after an end token")                                      //
      ("naive", "no KV cache: run the whole text through the model for every token")  //
      ("kv-dtype", "type of the KV cache: f32, f16 or bf16",
       cxxopts::value<std::string>()->default_value("f32"))  //
      ("json",
       "print one JSON object instead of text: {prompt_ids, ids, text, finish_reason, "
       "ttft_ms, tpot_ms, prefill_tokens_per_s, decode_tokens_per_s, device, activations}; "
       "with --samples or --beams {prompt_ids, answers: [{ids, text, finish_reason, and of "
       "beams "
       "log_probability, score}], device, activations}");
}

GenerateOptions generate_options(const cxxopts::ParseResult& given) {
  GenerateOptions o;
  o.sampling = {given["temperature"].as<double>(),
                given["top-k"].as<std::int64_t>(),
                given["top-p"].as<double>(),
                given["min-p"].as<double>(),
                given["repetition-penalty"].as<double>(),
                given["seed"].as<std::uint64_t>()};
  o.max_tokens = given["max-tokens"].as<std::int64_t>();
  o.ignore_end = given.count("ignore-end") > 0;
  if (given.count("stop") > 0) o.stop = given["stop"].as<std::vector<std::string>>();
  try {
    o.sampling.validate();
  } catch (const Error& e) {
    throw UsageError(e.what());
  }
  if (o.max_tokens < 1)
    throw UsageError(fmt::format("--max-tokens is {}; give a number >= 1", o.max_tokens));
  return o;
}

std::string read_prompt(const cxxopts::ParseResult& given) {
  const bool text = given.count("prompt") > 0, file = given.count("prompt-file") > 0;
  if (text == file) throw UsageError("give either --prompt TEXT or --prompt-file FILE");
  if (text) return given["prompt"].as<std::string>();
  const auto& path = given["prompt-file"].as<std::string>();
  std::ifstream in(path, std::ios::binary);
  LAB_CHECK(in.good(), "cannot read the prompt file '{}'; check the path", path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::int32_t> encode_prompt(const Tokenizer& tokenizer,
                                        const std::string& prompt, bool chat) {
  LAB_CHECK(!prompt.empty(), "the prompt is empty; give at least one character of text");
  if (!chat) return prompt_ids(tokenizer, prompt);
  const ChatMessage message{"user", prompt};
  return apply_chat_template(tokenizer, {&message, 1}, true);
}

void print_json(const GenerateResult& r, const LoadedModel& loaded) {
  const nlohmann::ordered_json out{
      {"prompt_ids", r.prompt_ids},
      {"ids", r.ids},
      {"text", r.text},
      {"finish_reason", name(r.finish_reason)},
      {"ttft_ms", r.metrics.ttft_ms()},
      {"tpot_ms", r.metrics.tpot_ms()},
      {"prefill_tokens_per_s", r.metrics.prefill_tokens_per_s()},
      {"decode_tokens_per_s", r.metrics.decode_tokens_per_s()},
      {"device", loaded.device->name()},
      {"activations", name(loaded.activations)}};
  fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_metrics(const GenerateResult& r, const LoadedModel& loaded) {
  fmt::print(
      stderr,
      "\n[{} prompt tokens, {} generated, {}; TTFT {:.1f} ms, TPOT {:.2f} ms; prefill "
      "{:.0f}, decode {:.0f} tokens/s; {}, {} activations]\n",
      r.prompt_ids.size(), r.ids.size(), name(r.finish_reason), r.metrics.ttft_ms(),
      r.metrics.tpot_ms(), r.metrics.prefill_tokens_per_s(),
      r.metrics.decode_tokens_per_s(), loaded.device->name(), name(loaded.activations));
}

}  // namespace

int generate(int argc, char** argv) {
  cxxopts::Options options("decodelab generate",
                           "Lets a model go on from a prompt. The text is printed as it is "
                           "made; the request's metrics follow on stderr.");
  add_options(options);
  const auto given = parse(options, argc, argv);
  if (!given) return 0;
  const GenerateOptions generation = generate_options(*given);
  const DType dtype = kv_dtype((*given)["kv-dtype"].as<std::string>());
  const bool several = several_answers(*given);
  apply_threads(*given);
  const std::string prompt = read_prompt(*given);
  const LoadedModel loaded = load(*given);
  const auto& model = loaded.model;
  const auto ids = encode_prompt(model->tokenizer(), prompt, given->count("chat") > 0);
  check_context(model->config(), std::ssize(ids));

  if (several) {
    print_answers(*given, loaded, ids, generation, dtype);
    return 0;
  }
  const bool json = given->count("json") > 0;
  const OnText show = [&](const std::string& text) {
    if (json) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  const auto run = [&] {
    if (given->count("naive") > 0) return generate_naive(*model, ids, generation, show);
    const auto cache = make_contiguous_cache(
        model->transformer(), 1,
        positions_needed(model->config(), std::ssize(ids), generation.max_tokens), dtype);
    return generate(*model, *cache, ids, generation, show);
  };
  const GenerateResult result = run();
  if (json) {
    print_json(result, loaded);
  } else {
    fmt::print("\n");
    std::fflush(stdout);
    print_metrics(result, loaded);
  }
  return 0;
}

}  // namespace lab::tools
