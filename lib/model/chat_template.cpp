#include "lab/model/chat_template.hpp"

#include <algorithm>

#include "lab/core/error.hpp"

namespace lab {
namespace {

constexpr std::string_view kStart = "<|im_start|>", kEnd = "<|im_end|>";

// The texts that a Jinja template can print: what stands outside of {{ }} and {% %}, and
// the string literals inside.
class JinjaTexts {
 public:
  explicit JinjaTexts(std::string_view source) : rest_(source) {}

  std::optional<std::string> next() {
    while (!rest_.empty()) {
      if (!inside_) return outside_text();
      if (const char c = rest_[0]; c == '\'' || c == '"') return literal(c);
      const bool closes = rest_.starts_with("}}") || rest_.starts_with("%}");
      inside_ = !closes;
      rest_.remove_prefix(closes ? 2 : 1);
    }
    return std::nullopt;
  }

 private:
  std::string outside_text() {
    const std::size_t end = std::min({rest_.find("{{"), rest_.find("{%"), rest_.size()});
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 2, rest_.size()));
    inside_ = true;
    return text;
  }

  std::string literal(char quote) {
    std::string text;
    std::size_t i = 1;
    for (; i < rest_.size() && rest_[i] != quote; ++i) {
      if (rest_[i] != '\\' || i + 1 == rest_.size()) {
        text += rest_[i];
        continue;
      }
      ++i;
      text += rest_[i] == 'n' ? '\n' : rest_[i] == 't' ? '\t' : rest_[i];
    }
    rest_.remove_prefix(std::min(i + 1, rest_.size()));
    return text;
  }

  std::string_view rest_;
  bool inside_ = false;
};

struct ChatTokens {
  std::optional<std::int32_t> start, end;
};
ChatTokens chat_tokens(const Tokenizer& tokenizer) {
  return {tokenizer.find_special(kStart), tokenizer.find_special(kEnd)};
}

}  // namespace

std::optional<std::string> default_system_message(std::string_view jinja) {
  const std::string opening = std::string(kStart) + "system\n";
  JinjaTexts texts(jinja);
  while (const auto text = texts.next()) {
    const std::size_t start = text->find(opening);
    if (start == std::string::npos) continue;
    const std::size_t begin = start + opening.size(), end = text->find(kEnd, begin);
    if (end != std::string::npos) return text->substr(begin, end - begin);
  }
  return std::nullopt;
}

bool has_chat_template(const Tokenizer& tokenizer) {
  const ChatTokens tokens = chat_tokens(tokenizer);
  return tokens.start && tokens.end;
}

std::vector<std::int32_t> apply_chat_template(const Tokenizer& tokenizer,
                                              std::span<const ChatMessage> messages,
                                              bool add_generation_prompt) {
  const ChatTokens tokens = chat_tokens(tokenizer);
  LAB_CHECK(tokens.start && tokens.end,
            "this model has no ChatML chat template (its vocabulary lacks {} or {}): run "
            "without --chat",
            kStart, kEnd);
  LAB_CHECK(!messages.empty(), "a chat needs at least one message, but there is none");

  std::vector<std::int32_t> ids;
  // Role and content are tokenized as one text, as they are when the template's output is
  // tokenized as a whole: a content that begins with "\n" merges with the one before it.
  const auto append = [&](std::string_view text) {
    const std::vector<std::int32_t> more = tokenizer.encode(text, Specials::as_text);
    ids.insert(ids.end(), more.begin(), more.end());
  };
  const auto append_message = [&](std::string_view role, std::string_view content) {
    ids.push_back(*tokens.start);
    append(std::string(role) + "\n" + std::string(content));
    ids.push_back(*tokens.end);
    append("\n");
  };
  if (messages.front().role != "system")
    if (const auto system = default_system_message(tokenizer.vocab().chat_template))
      append_message("system", *system);
  for (const ChatMessage& message : messages) append_message(message.role, message.content);
  if (add_generation_prompt) {
    ids.push_back(*tokens.start);
    append("assistant\n");
  }
  return ids;
}

}  // namespace lab
