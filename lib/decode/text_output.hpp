/// @file
/// Turns an answer's tokens into text that may be shown.
#pragma once

#include <string>
#include <utility>

#include "lab/decode/generate.hpp"
#include "lab/decode/stop.hpp"
#include "lab/model/stream_decoder.hpp"

namespace lab {

/// Decodes the tokens of one answer, passes text on as soon as it is certain, and says when
/// a stop string has come.
class TextOutput {
 public:
  /// @param model, on_text  must outlive it
  TextOutput(const Model& model, const GenerateOptions& options, const OnText& on_text)
      : decoder_(model.tokenizer()), stop_(options.stop), on_text_(on_text) {}

  /// The next token.
  void token(std::int32_t id) { show(stop_.push(decoder_.push(id))); }
  /// There are no more.
  void finish() {
    show(stop_.push(decoder_.finish()));
    if (!stop_.stopped()) show(stop_.finish());
  }
  bool stopped() const { return stop_.stopped(); }  ///< at a stop string
  /// All of the text.
  std::string take() { return std::move(text_); }

 private:
  void show(const std::string& text) {
    text_ += text;
    if (on_text_ && !text.empty()) on_text_(text);
  }
  StreamDecoder decoder_;
  StopMatcher stop_;
  const OnText& on_text_;
  std::string text_;
};

}  // namespace lab
