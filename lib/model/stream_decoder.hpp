/// @file
/// Tokens to text, one token at a time.
#pragma once

#include <cstdint>
#include <string>

#include "lab/model/tokenizer.hpp"

namespace lab {

/// Turns generated tokens into text that can be printed at once. One character may be
/// spread over several tokens: its bytes are held back until it is complete.
///
/// What push and finish return, joined, is sanitize_utf8(tokenizer.decode(ids, control));
/// each part alone is valid UTF-8.
class StreamDecoder {
 public:
  /// @param tokenizer  must outlive this decoder
  explicit StreamDecoder(const Tokenizer& tokenizer,
                         ControlTokens control = ControlTokens::keep);

  /// @return the text that this token completes, often empty
  /// @throws Error if the id is not in [0, tokenizer.size())
  std::string push(std::int32_t id);

  /// Ends the text. @return U+FFFD if it broke off inside a character, else nothing
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  ControlTokens control_;
  std::string pending_;  // the first bytes of a character
};

}  // namespace lab
