/// @file
/// Chat messages to the token ids a chat model was trained on (ChatML).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/model/tokenizer.hpp"

namespace lab {

struct ChatMessage {
  std::string role;     ///< "system", "user" or "assistant"
  std::string content;  ///< UTF-8, any text
};

/// Each message becomes `<|im_start|>role\ncontent<|im_end|>\n`. If the first is not a
/// system message and the model's own template has a default one, that is put before it. No
/// bos.
///
/// Only the scaffolding holds control tokens: `<|im_end|>` inside a message is text.
///
/// @param add_generation_prompt  end with `<|im_start|>assistant\n`, so that the model
/// answers
/// @throws Error if the vocabulary lacks the ChatML tokens, or there is no message
std::vector<std::int32_t> apply_chat_template(const Tokenizer& tokenizer,
                                              std::span<const ChatMessage> messages,
                                              bool add_generation_prompt);

/// @return whether apply_chat_template can be used with this tokenizer
bool has_chat_template(const Tokenizer& tokenizer);

/// The system message that a ChatML template inserts by itself: the constant text between
/// `<|im_start|>system\n` and `<|im_end|>` in one string of the Jinja source.
std::optional<std::string> default_system_message(std::string_view jinja);

}  // namespace lab
