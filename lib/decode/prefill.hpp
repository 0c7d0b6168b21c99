/// @file
/// A text through the model, in passes of bounded size.
#pragma once

#include <cstdint>
#include <span>

#include "lab/model/kv_cache.hpp"
#include "lab/model/transformer.hpp"

namespace lab {

/// Tokens in one forward pass unless the caller says otherwise; bounds the memory of a
/// pass.
inline constexpr std::int64_t kPrefillChunk = 512;

/// @throws Error unless the model's context holds `n_tokens`, and there is at least one
void check_context(const Config& config, std::int64_t n_tokens);

/// Passes the tokens of sequence 0 that `cache` does not have yet through the model.
/// @param text    all tokens, those that are stored included
/// @param stored  how many the cache has; fewer than text.size()
/// @param chunk   tokens in one pass, at least 1
/// @return logits (1, V) after the last token, valid until the next pass
/// @throws Error as Transformer::forward()
HostView<const float, 2> prefill(Transformer& transformer, KvCache& cache,
                                 std::span<const std::int32_t> text,
                                 std::int64_t stored = 0,
                                 std::int64_t chunk = kPrefillChunk);

}  // namespace lab
