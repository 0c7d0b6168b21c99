#include "lab/batching/model_runner.hpp"

#include <algorithm>

#include "lab/core/error.hpp"

namespace lab {

// [region run]
std::vector<StepToken> TransformerRunner::run(const StepInput& input) {
  const auto logits = model_.transformer().forward(input.batch, cache_);  // (N, V)
  // Rows of the embedding beyond the tokenizer's ids are padding and have no text.
  const std::int64_t n_ids = std::min(model_.tokenizer().size(), logits.shape[1]);
  std::vector<StepToken> tokens(input.rows.size());
  std::int64_t n_sampled = 0;  // rows that draw nothing have no logits
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const StepRow& row = input.rows[i];
    if (!row.sampler) continue;
    const std::span row_logits(logits[n_sampled++].data, std::size_t(n_ids));
    try {
      tokens[i].token = row.sampler->sample(row_logits, row.text);
    } catch (const Error& error) {
      tokens[i].error = error.what();
    }
  }
  return tokens;
}
// [endregion]

double StepCost::seconds(const StepInput& input) const {
  double read = 0;  // positions
  for (const Segment& s : input.batch.segments())
    read += static_cast<double>(s.position + s.count);
  const auto tokens = static_cast<double>(input.batch.n_tokens() + input.padding);
  return step_s + token_s * tokens + kv_s * read;
}

SimulatedModel::SimulatedModel(VirtualClock& clock, const StepCost& cost,
                               std::int64_t context_length, std::int64_t vocab_size)
    : clock_(clock), cost_(cost), context_length_(context_length), vocab_size_(vocab_size) {
  LAB_CHECK(
      context_length >= 1 && vocab_size >= 1,
      "simulated model: a context of {} and a vocabulary of {}; both must be at least "
      "1",
      context_length, vocab_size);
}

std::vector<StepToken> SimulatedModel::run(const StepInput& input) {
  clock_.advance(cost_.seconds(input));
  std::vector<StepToken> tokens;
  for (const StepRow& row : input.rows) {
    std::uint64_t mix = row.text.size();
    for (const std::int32_t id : row.text.last(std::min<std::size_t>(4, row.text.size())))
      mix = (mix ^ static_cast<std::uint64_t>(id)) * 0x9e3779b97f4a7c15u;
    tokens.push_back({static_cast<std::int32_t>((mix >> 32) % std::uint64_t(vocab_size_))});
  }
  return tokens;
}

}  // namespace lab
