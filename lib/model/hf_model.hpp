/// @file
/// What the JSON files of a Hugging Face model folder say about the model and its
/// tokenizer.
#pragma once

#include <filesystem>
#include <string_view>

#include "lab/model/checkpoint.hpp"
#include "lab/model/config.hpp"
#include "lab/model/vocab.hpp"

namespace lab {

/// Reads the text of config.json. vocab_size is the number of rows of the embedding tensor;
/// the layout is half_split.
/// @throws Error if it is not valid JSON, not a Llama model, a key is missing or
/// impossible, or
///   the model needs something that is not supported (biases, other activations or
///   scalings)
Config config_from_hf(std::string_view config_json, const Checkpoint& checkpoint);

/// Reads tokenizer.json, then the special tokens from config.json, generation_config.json
/// and and tokenizer_config.json and the chat template, as far as those files exist.
/// @param folder  holds tokenizer.json
/// @throws Error if a file is not valid
Vocab vocab_from_hf(const std::filesystem::path& folder);

}  // namespace lab
