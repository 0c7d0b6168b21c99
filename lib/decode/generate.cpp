#include "lab/decode/generate.hpp"

#include <algorithm>

#include "lab/core/error.hpp"
#include "lab/decode/no_kv_cache.hpp"
#include "lab/decode/prefill.hpp"
#include "lab/decode/text_output.hpp"

namespace lab {
namespace {

/// Gives the logits (V) that follow `text`. It is called with the prompt first, and then
/// with the same text and one more token each time.
using NextLogits =
    std::function<std::span<const float>(const std::vector<std::int32_t>& text)>;

void check_prompt(const Config& config, const std::vector<std::int32_t>& prompt,
                  const GenerateOptions& options) {
  check_context(config, std::ssize(prompt));
  LAB_CHECK(options.max_tokens >= 1, "max-tokens is {}; give a number >= 1",
            options.max_tokens);
  LAB_CHECK(options.prefill_chunk >= 1,
            "the prefill chunk is {} tokens; give a number >= 1", options.prefill_chunk);
}

// [region loop]
GenerateResult run_loop(const Model& model, const std::vector<std::int32_t>& prompt,
                        const GenerateOptions& options, const OnText& on_text,
                        const NextLogits& next_logits) {
  GenerateResult result{
      prompt, {}, "", FinishReason::length, RequestMetrics(std::ssize(prompt))};
  Sampler sampler(options.sampling);
  TextOutput output(model, options, on_text);
  std::vector<std::int32_t> text = prompt;  // prompt and answer
  for (;;) {
    // Rows of the embedding beyond the tokenizer's ids are padding and have no text.
    const auto n_ids = static_cast<std::size_t>(model.tokenizer().size());
    const auto logits = next_logits(text);
    const std::int32_t id =
        sampler.sample(logits.first(std::min(n_ids, logits.size())), text);
    result.metrics.token();
    result.ids.push_back(id);
    text.push_back(id);
    const bool end = model.tokenizer().is_end(id) && !options.ignore_end;
    if (!end) output.token(id);
    if (end || output.stopped()) {
      result.finish_reason = FinishReason::stop;
      break;
    }
    if (std::ssize(result.ids) == options.max_tokens ||
        std::ssize(text) > model.config().context_length)
      break;
  }
  output.finish();
  result.text = output.take();
  return result;
}
// [endregion]

std::span<const float> last_row(HostView<const float, 2> logits) {
  const auto row = logits[logits.shape[0] - 1];
  return {row.data, static_cast<std::size_t>(row.shape[0])};
}

}  // namespace

const char* name(FinishReason reason) {
  return reason == FinishReason::stop ? "stop" : "length";
}

std::int64_t positions_needed(const Config& config, std::int64_t prompt_tokens,
                              std::int64_t max_tokens) {
  // The last token is never fed back; the sum of two user-given counts could overflow.
  return std::min(config.context_length - prompt_tokens, max_tokens - 1) + prompt_tokens;
}

// [region generate]
GenerateResult generate(Model& model, KvCache& cache,
                        const std::vector<std::int32_t>& prompt,
                        const GenerateOptions& options, const OnText& on_text) {
  check_prompt(model.config(), prompt, options);
  std::int64_t stored = 0;  // tokens whose keys and values are in the cache
  return run_loop(
      model, prompt, options, on_text, [&](const std::vector<std::int32_t>& text) {
        const auto logits =
            prefill(model.transformer(), cache, text, stored, options.prefill_chunk);
        stored = std::ssize(text);
        return last_row(logits);
      });
}
// [endregion]

// [region generate_naive]
GenerateResult generate_naive(Model& model, const std::vector<std::int32_t>& prompt,
                              const GenerateOptions& options, const OnText& on_text) {
  check_prompt(model.config(), prompt, options);
  NoKvCache nothing(model.device());
  return run_loop(
      model, prompt, options, on_text, [&](const std::vector<std::int32_t>& text) {
        return last_row(model.transformer().forward(single_sequence(0, text), nothing));
      });
}
// [endregion]

}  // namespace lab
