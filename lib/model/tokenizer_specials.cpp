#include "lab/model/tokenizer_specials.hpp"

namespace lab {

std::int32_t SpecialMatcher::child(std::int32_t node, char byte) const {
  for (const auto& [key, next] : nodes_[node].children)
    if (key == byte) return next;
  return -1;
}

void SpecialMatcher::add(std::string_view text, std::int32_t id) {
  if (text.empty()) return;
  std::int32_t node = 0;
  for (const char byte : text) {
    std::int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<std::int32_t>(nodes_.size());
      nodes_[node].children.emplace_back(byte, next);
      nodes_.emplace_back();
    }
    node = next;
  }
  nodes_[node].id = id;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text,
                                                          std::size_t from) const {
  if (nodes_.size() == 1) return std::nullopt;
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    std::optional<Match> longest;
    std::int32_t node = 0;
    for (std::size_t i = begin; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node < 0) break;
      if (nodes_[node].id >= 0) longest = Match{begin, i + 1 - begin, nodes_[node].id};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace lab
