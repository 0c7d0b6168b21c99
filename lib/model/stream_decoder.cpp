#include "lab/model/stream_decoder.hpp"

#include <utility>

#include "lab/model/utf8.hpp"

namespace lab {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, ControlTokens control)
    : tokenizer_(&tokenizer), control_(control) {}

std::string StreamDecoder::push(std::int32_t id) {
  const std::string_view token = tokenizer_->piece(id);
  if (control_ == ControlTokens::skip && tokenizer_->is_control(id)) return {};
  pending_ += token;
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Unit unit = next_utf8_unit(rest);
    if (unit.incomplete) break;
    text += unit.valid ? rest.substr(0, unit.length) : kReplacement;
    rest.remove_prefix(unit.length);
  }
  pending_ = std::string(rest);
  return text;
}

std::string StreamDecoder::finish() { return sanitize_utf8(std::exchange(pending_, {})); }

}  // namespace lab
