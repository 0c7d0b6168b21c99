/// @file
/// A tokenizer's data, as read from a model file, before anything is built from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lab {

/// GGUF's token types (tokenizer.ggml.token_type).
enum class TokenType : std::int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

/// Byte-level BPE vocabulary. Texts of normal tokens are written in the GPT-2 alphabet (a
/// space is U+0120); control and user-defined tokens are raw text.
struct Vocab {
  std::string pre;  ///< pre-tokenizer: "gpt-2", "smollm", "llama-bpe", "qwen2"
  std::vector<std::string> tokens;  ///< (V), index = id
  std::vector<TokenType> types;     ///< (V)
  std::vector<std::string> merges;  ///< "left right", index = rank
  std::optional<std::int32_t> bos, eos, unknown, padding;
  std::vector<std::int32_t>
      end_of_generation;  ///< every id that ends an answer (eos, eot ...)
  bool add_bos = false;
  bool ignore_merges = false;  ///< a pre-token that is in the vocabulary is not merged
  std::string chat_template;   ///< Jinja source; empty if the model has none
};

}  // namespace lab
