/// @file
/// Hugging Face's tokenizer.json: the tokenizer of a model stored as safetensors.
#pragma once

#include <filesystem>
#include <string_view>

#include "lab/model/vocab.hpp"

namespace lab {

/// Reads a byte-level BPE tokenizer from the text of a tokenizer.json. Sets pre, tokens,
/// types (special added tokens are control tokens, other added ones user-defined), merges,
/// ignore_merges, and bos with add_bos if the post-processor puts a token in front. The
/// file does not say which tokens are eos, unknown and padding.
///
/// Ids that neither the vocabulary nor added_tokens names become unused tokens "[PAD{id}]".
/// @throws Error if this is not JSON, or describes a tokenizer that lab::Tokenizer is not:
///         another model than BPE, a normalizer, an unknown pre-tokenizer, ...
Vocab parse_hf_tokenizer(std::string_view json_text);

/// Reads a tokenizer.json from disk.
/// @throws Error that names the file, if it cannot be read or parse_hf_tokenizer refuses it
Vocab load_hf_vocab(const std::filesystem::path& tokenizer_json);

}  // namespace lab
