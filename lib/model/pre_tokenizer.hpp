/// @file
/// Splitting text into the words that byte-pair encoding works on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lab {

/// Cuts text into pre-tokens: a merge never reaches across a cut. Which cuts are made is
/// part of the model, since it was trained on them.
///
/// Letters and numbers are those of the Unicode version of the PCRE2 library in use (14 for
/// PCRE2 10.40 to 10.42); characters assigned later count as punctuation.
class PreTokenizer {
 public:
  /// @param name  as in GGUF's tokenizer.ggml.pre: "gpt-2", "smollm", "llama-bpe" or
  /// "qwen2"
  /// @throws Error if the name is another
  explicit PreTokenizer(const std::string& name);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  /// @param text  valid UTF-8
  /// @return the pre-tokens, in order; joined, they are the text
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Pattern;
  std::unique_ptr<const Pattern> pattern_;
};

}  // namespace lab
