#include "lab/model/bpe.hpp"

#include <algorithm>
#include <queue>

#include "lab/core/error.hpp"
#include "lab/model/byte_alphabet.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

// A token of the word being merged; the tokens form a list, so that joining is O(1).
struct Symbol {
  std::int32_t id;  // -1 once it was joined to the symbol before it
  std::int32_t previous, next;
};

struct Candidate {
  std::int32_t rank;
  std::int32_t left;               // index of a symbol
  std::int32_t left_id, right_id;  // what stood there when this candidate was found
  std::int32_t result;
};
struct LaterMerge {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

bool mergeable(TokenType type) {
  return type == TokenType::normal || type == TokenType::user_defined;
}

}  // namespace

Bpe::Bpe(const Vocab& vocab) {
  TextIds ids;
  ids.reserve(vocab.tokens.size());
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.tokens[i].empty()) continue;  // a gap that no text can reach
    const auto [place, is_new] = ids.emplace(vocab.tokens[i], static_cast<std::int32_t>(i));
    LAB_CHECK(is_new,
              "tokens {} and {} of the vocabulary are both {}, but each token must occur "
              "once: the model file is damaged",
              place->second, i, detail::quote(vocab.tokens[i]));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(alphabet_letter(static_cast<std::uint8_t>(byte)));
    const bool usable =
        found != ids.end() && vocab.types[found->second] == TokenType::normal;
    byte_ids_[byte] = usable ? found->second : -1;
  }
  merges_.reserve(vocab.merges.size());
  for (std::size_t rank = 0; rank < vocab.merges.size(); ++rank)
    add_merge(vocab, ids, rank);
  if (!vocab.ignore_merges) return;
  for (const auto& [text, id] : ids)
    if (vocab.types[id] == TokenType::normal)
      if (auto bytes = from_alphabet(text)) whole_words_.emplace(std::move(*bytes), id);
}

void Bpe::add_merge(const Vocab& vocab, const TextIds& ids, std::size_t rank) {
  const std::string& merge = vocab.merges[rank];
  const std::size_t space = merge.find(' ', 1);
  LAB_CHECK(space != std::string::npos && space + 1 < merge.size(),
            "merge {} of the vocabulary is {}, but a merge is two tokens with a space "
            "between them: the model file is damaged",
            rank, detail::quote(merge));
  const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
  std::array<std::int32_t, 3> found{};
  const std::array<std::string, 3> texts{left, right, left + right};
  bool usable = true;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto place = ids.find(texts[i]);
    // Text never comes apart into a token that does not exist: the merge is never wanted.
    if (place == ids.end() && i < 2) return;
    LAB_CHECK(place != ids.end(),
              "merge {} of the vocabulary, {}, needs the token {}, which is not in it: the "
              "model file is damaged",
              rank, detail::quote(merge), detail::quote(texts[i]));
    found[i] = place->second;
    usable = usable && mergeable(vocab.types[found[i]]);
  }
  if (!usable) return;
  const bool is_new = merges_
                          .emplace(pair_key(found[0], found[1]),
                                   Merge{static_cast<std::int32_t>(rank), found[2]})
                          .second;
  LAB_CHECK(
      is_new,
      "merge {} of the vocabulary, {}, occurs twice, so its rank is unclear: the model "
      "file is damaged",
      rank, detail::quote(merge));
}

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::append_ids(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (!whole_words_.empty()) {
    const auto found = whole_words_.find(std::string(word));
    if (found != whole_words_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  merge_bytes(word, ids);
}

// [region merge]
void Bpe::merge_bytes(std::string_view word, std::vector<std::int32_t>& ids) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (const char byte : word) {
    const std::int32_t id = byte_ids_[static_cast<std::uint8_t>(byte)];
    const auto i = static_cast<std::int32_t>(symbols.size());
    if (id >= 0) symbols.push_back({id, i - 1, i + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;

  std::vector<Candidate> start;
  const auto candidate = [&](std::int32_t left, auto&& add) {
    if (left < 0 || symbols[left].next < 0) return;
    const std::int32_t a = symbols[left].id, b = symbols[symbols[left].next].id;
    if (const Merge* merge = find_merge(a, b))
      add({merge->rank, left, a, b, merge->result});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i)
    candidate(static_cast<std::int32_t>(i), [&](Candidate c) { start.push_back(c); });
  std::priority_queue<Candidate, std::vector<Candidate>, LaterMerge> queue(
      LaterMerge{}, std::move(start));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    // A neighbour may have been merged since: then this candidate is stale.
    if (left.id != best.left_id || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    if (right.id != best.right_id) continue;
    left.id = best.result;
    right.id = -1;
    left.next = right.next;
    if (right.next >= 0) symbols[right.next].previous = best.left;
    const auto push = [&](Candidate c) { queue.push(c); };
    candidate(left.previous, push);
    candidate(best.left, push);
  }
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next) ids.push_back(symbols[i].id);
}
// [endregion]

}  // namespace lab
