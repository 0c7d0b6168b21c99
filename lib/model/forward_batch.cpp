#include "lab/model/forward_batch.hpp"

#include "lab/core/error.hpp"

namespace lab {

void ForwardBatch::add(std::int64_t sequence, std::int64_t position,
                       std::span<const std::int32_t> tokens, bool all_logits) {
  const std::int64_t begin = n_tokens();
  add_without_logits(sequence, position, tokens);
  for (std::int64_t t = all_logits ? begin : n_tokens() - 1; t < n_tokens(); ++t)
    logit_tokens_.push_back(t);
}

void ForwardBatch::add_without_logits(std::int64_t sequence, std::int64_t position,
                                      std::span<const std::int32_t> tokens) {
  LAB_CHECK(!tokens.empty(), "forward batch: sequence {} has no tokens; give at least one",
            sequence);
  LAB_CHECK(position >= 0,
            "forward batch: sequence {} starts at position {}; positions are >= 0",
            sequence, position);
  for (const Segment& s : segments_)
    LAB_CHECK(s.sequence != sequence,
              "forward batch: sequence {} is added twice; give its tokens in one piece",
              sequence);
  segments_.push_back(
      {sequence, n_tokens(), static_cast<std::int64_t>(tokens.size()), position});
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens_.push_back(tokens[i]);
    positions_.push_back(
        static_cast<std::int32_t>(position + static_cast<std::int64_t>(i)));
  }
}

ForwardBatch single_sequence(std::int64_t position, std::span<const std::int32_t> tokens) {
  ForwardBatch batch;
  batch.add(0, position, tokens);
  return batch;
}

}  // namespace lab
