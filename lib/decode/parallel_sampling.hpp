/// @file
/// Several answers to one prompt, drawn independently.
#pragma once

#include <vector>

#include "lab/decode/generate.hpp"
#include "lab/decode/sequence_store.hpp"

namespace lab {

/// Draws n answers. The prompt is computed once, and its keys and values are shared. Answer
/// i is the one that generate() gives with the seed sample_seed(seed, i): it depends
/// neither on n nor on the others.
/// @return n results, in order
/// @throws Error as generate(), if n < 1, or if the store is too small
std::vector<GenerateResult> generate_samples(Model& model, SequenceStore& store,
                                             const std::vector<std::int32_t>& prompt,
                                             const GenerateOptions& options,
                                             std::int64_t n);

/// The seed of one of several answers; that of answer 0 is `seed` itself.
std::uint64_t sample_seed(std::uint64_t seed, std::int64_t index);

}  // namespace lab
