/// @file
/// The generation loop.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/decode/metrics.hpp"
#include "lab/decode/prefill.hpp"
#include "lab/decode/sampler.hpp"
#include "lab/model/model.hpp"

namespace lab {

struct GenerateOptions {
  SamplingParams sampling;
  std::int64_t max_tokens = 128;
  std::vector<std::string> stop;  ///< text that ends the answer, and is not part of it
  bool ignore_end = false;        ///< go on after an end token, as benchmarks do
  std::int64_t prefill_chunk = kPrefillChunk;  ///< prompt tokens in one forward pass
};

/// Why an answer ended.
enum class FinishReason {
  stop,    ///< an end token or a stop string
  length,  ///< max_tokens, or the context is full
};
/// "stop" or "length", as the OpenAI API names them
const char* name(FinishReason reason);

struct GenerateResult {
  std::vector<std::int32_t> prompt_ids;
  std::vector<std::int32_t> ids;  ///< with the end token, if there was one
  std::string text;               ///< without it, and without the stop string
  FinishReason finish_reason = FinishReason::length;
  RequestMetrics metrics;
};

/// Receives text as soon as it is certain: whole characters, no part of a stop string.
using OnText = std::function<void(const std::string&)>;

/// Generates with a KV cache: the prompt once, then one token a step.
/// @param cache  empty at sequence 0
/// @throws Error if the prompt is empty or longer than the context, or the cache is too
/// small
GenerateResult generate(Model& model, KvCache& cache,
                        const std::vector<std::int32_t>& prompt,
                        const GenerateOptions& options, const OnText& on_text = {});

/// Generates without one: every step runs the whole text through the model again. Gives the
/// same tokens as generate(), slower.
GenerateResult generate_naive(Model& model, const std::vector<std::int32_t>& prompt,
                              const GenerateOptions& options, const OnText& on_text = {});

/// @return positions a cache needs for generate(): prompt and answer, at most the context
std::int64_t positions_needed(const Config& config, std::int64_t prompt_tokens,
                              std::int64_t max_tokens);

}  // namespace lab
