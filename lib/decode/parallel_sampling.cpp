#include "lab/decode/parallel_sampling.hpp"

#include <algorithm>
#include <deque>

#include "lab/core/error.hpp"
#include "lab/decode/shared_prefill.hpp"
#include "lab/decode/text_output.hpp"

namespace lab {
namespace {

const OnText kNoText;

/// One of the answers while it is being made.
struct Answer {
  Answer(const Model& model, const GenerateOptions& options, std::int64_t in,
         const std::vector<std::int32_t>& prompt)
      : sequence(in),
        text(prompt),
        sampler(options.sampling),
        output(model, options, kNoText),
        result{prompt, {}, "", FinishReason::length, RequestMetrics(std::ssize(prompt))} {}

  std::int64_t sequence;
  std::vector<std::int32_t> text;  // prompt and answer
  Sampler sampler;
  TextOutput output;
  GenerateResult result;
};

/// Draws the next token. @return whether the answer goes on
bool draw(Answer& a, const Model& model, const GenerateOptions& options,
          std::span<const float> logits) {
  const auto n_ids = static_cast<std::size_t>(model.tokenizer().size());
  const std::int32_t id =
      a.sampler.sample(logits.first(std::min(n_ids, logits.size())), a.text);
  a.result.metrics.token();
  a.result.ids.push_back(id);
  a.text.push_back(id);
  const bool end = model.tokenizer().is_end(id) && !options.ignore_end;
  if (!end) a.output.token(id);
  if (end || a.output.stopped()) a.result.finish_reason = FinishReason::stop;
  return !end && !a.output.stopped() && std::ssize(a.result.ids) < options.max_tokens &&
         std::ssize(a.text) <= model.config().context_length;
}

}  // namespace

std::uint64_t sample_seed(std::uint64_t seed, std::int64_t index) {
  return seed + std::uint64_t(index) * 0x9e3779b97f4a7c15u;
}

// [region samples]
std::vector<GenerateResult> generate_samples(Model& model, SequenceStore& store,
                                             const std::vector<std::int32_t>& prompt,
                                             const GenerateOptions& options,
                                             std::int64_t n) {
  LAB_CHECK(n >= 1, "n is {}; ask for at least one answer", n);
  LAB_CHECK(options.max_tokens >= 1, "max-tokens is {}; give a number >= 1",
            options.max_tokens);
  SharedPrefill shared(model, store, prompt, options.prefill_chunk);
  std::deque<Answer> answers;
  std::vector<Answer*> live;
  for (std::int64_t i = 0; i < n; ++i) {
    GenerateOptions own = options;
    own.sampling.seed = sample_seed(options.sampling.seed, i);
    Answer& a = answers.emplace_back(model, own, shared.take(), prompt);
    if (draw(a, model, options, shared.logits()))
      live.push_back(&a);
    else
      store.close(a.sequence);
  }
  shared.done();
  while (!live.empty()) {
    ForwardBatch batch;
    for (const Answer* a : live) add_gap(batch, store, a->sequence, a->text);
    const auto logits = model.transformer().forward(batch, store.cache());
    std::vector<Answer*> going_on;
    for (std::size_t i = 0; i < live.size(); ++i) {
      Answer& a = *live[i];
      store.stored(a.sequence, a.text);
      if (draw(a, model, options, row_of(logits, i)))
        going_on.push_back(&a);
      else
        store.close(a.sequence);
    }
    live = std::move(going_on);
  }
  std::vector<GenerateResult> results;
  for (Answer& a : answers) {
    a.output.finish();
    a.result.text = a.output.take();
    results.push_back(std::move(a.result));
  }
  return results;
}
// [endregion]

}  // namespace lab
