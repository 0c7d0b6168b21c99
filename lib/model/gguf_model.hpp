/// @file
/// What a GGUF file's metadata says about the model and its tokenizer.
#pragma once

#include "lab/model/checkpoint.hpp"
#include "lab/model/config.hpp"
#include "lab/model/gguf.hpp"
#include "lab/model/vocab.hpp"

namespace lab {

/// Reads the `llama.*` keys. vocab_size is the number of rows of token_embd.weight;
/// divisors come from rope_freqs.weight and from linear scaling; the layout is interleaved.
/// @throws Error if the architecture is not "llama", a key is missing or impossible, or the
///   model needs a position scaling that is not supported
Config config_from_gguf(const GgufMetadata& metadata, const Checkpoint& checkpoint);

/// Reads the `tokenizer.*` keys.
/// @throws Error unless it is a byte-level BPE tokenizer with a known pre-tokenizer
Vocab vocab_from_gguf(const GgufMetadata& metadata);

}  // namespace lab
