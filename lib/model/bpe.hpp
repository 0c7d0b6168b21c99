/// @file
/// Byte-pair merging: one word's bytes to token ids.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lab/model/vocab.hpp"

namespace lab {

/// The merge table of a vocabulary. Only normal and user-defined tokens take part: no text
/// is ever merged into a control token.
class Bpe {
 public:
  /// @param vocab  with one type per token
  /// @throws Error if a token text or a merge occurs twice, or a merge is not two known
  /// tokens
  ///         whose joined text is a token
  explicit Bpe(const Vocab& vocab);

  /// Appends the ids of one word (pre-token).
  ///
  /// Starts with one token per byte and joins, again and again, the neighbours whose merge
  /// has the lowest rank, the leftmost on ties. O(n log n) for n bytes. A byte without a
  /// token is left out before the merging, so its neighbours can merge (as Hugging Face
  /// does; llama.cpp leaves it out afterwards).
  void append_ids(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct Merge {
    std::int32_t rank, result;
  };
  using TextIds = std::unordered_map<std::string_view, std::int32_t>;

  void add_merge(const Vocab& vocab, const TextIds& ids, std::size_t rank);
  const Merge* find_merge(std::int32_t left, std::int32_t right) const;
  void merge_bytes(std::string_view word, std::vector<std::int32_t>& ids) const;

  std::array<std::int32_t, 256> byte_ids_;           // -1: the vocabulary lacks this byte
  std::unordered_map<std::uint64_t, Merge> merges_;  // key: left id, right id
  std::unordered_map<std::string, std::int32_t> whole_words_;  // only with ignore_merges
};

}  // namespace lab
