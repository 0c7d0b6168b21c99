/// @file
/// Finding special tokens in text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace lab {

/// A set of texts with ids, searched from left to right, the longest at each place.
class SpecialMatcher {
 public:
  struct Match {
    std::size_t begin, length;  ///< bytes
    std::int32_t id;
  };

  /// @param text  empty texts are ignored; of equal texts, the last one counts
  void add(std::string_view text, std::int32_t id);

  /// @return the first match that begins at byte `from` or later
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  // A trie. Special tokens are few, but hundreds may share their first letters
  // ("<|reserved_").
  struct Node {
    std::int32_t id = -1;  // of the special token that ends here
    std::vector<std::pair<char, std::int32_t>> children;  // byte, node
  };
  std::int32_t child(std::int32_t node, char byte) const;

  std::vector<Node> nodes_{1};
};

}  // namespace lab
