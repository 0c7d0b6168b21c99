#include "lab/decode/prefill.hpp"

#include <algorithm>

#include "lab/core/error.hpp"

namespace lab {

void check_context(const Config& config, std::int64_t n_tokens) {
  LAB_CHECK(n_tokens >= 1, "the prompt is empty; give at least one token of text");
  LAB_CHECK(n_tokens <= config.context_length,
            "the prompt has {} tokens but the model's context holds {}; shorten the prompt",
            n_tokens, config.context_length);
}

// [region prefill]
HostView<const float, 2> prefill(Transformer& transformer, KvCache& cache,
                                 std::span<const std::int32_t> text, std::int64_t stored,
                                 std::int64_t chunk) {
  HostView<const float, 2> logits;
  while (stored < std::ssize(text)) {
    const std::int64_t count = std::min(chunk, std::ssize(text) - stored);
    const auto fresh = text.subspan(std::size_t(stored), std::size_t(count));
    logits = transformer.forward(single_sequence(stored, fresh), cache);
    stored += count;
  }
  return logits;
}
// [endregion]

}  // namespace lab
