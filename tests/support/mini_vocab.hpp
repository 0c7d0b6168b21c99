/// @file
/// A vocabulary small enough to check by hand: 271 ids, smollm pre-tokenizer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/model/vocab.hpp"

namespace lab::test {

/// A code point below U+0800 as UTF-8.
inline std::string utf8(unsigned code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | code_point >> 6),
          static_cast<char>(0x80 | (code_point & 63))};
}

/// Ids 0..2 are <|endoftext|> <|im_start|> <|im_end|>; 3..258 the byte symbols of the GPT-2
/// alphabet by code point ('!' is 3, byte 0xff 190, byte 0 191, a space 223); then the
/// merges.
inline Vocab mini_vocab() {
  Vocab v;
  v.pre = "smollm";
  v.tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (unsigned c = 0x21; c < 0x144; ++c)
    if (c < 0x7f || (c > 0xa0 && c != 0xad)) v.tokens.push_back(utf8(c));
  const std::string space = utf8(0x120);
  const std::vector<std::pair<std::string, std::string>> merges = {
      {space, "t"},        {"h", "e"},
      {space + "t", "he"}, {"l", "l"},
      {space, space},      {space + space, space + space},
      {"a", "a"},          {"aa", "a"},
      {"he", "ll"},        {utf8(0xc3), utf8(0xa9)},
      {"u", "s"},          {"us", "er"}};
  for (const auto& [left, right] : merges) {
    v.merges.push_back(left + " " + right);
    v.tokens.push_back(left + right);
  }
  v.types.assign(v.tokens.size(), TokenType::normal);
  for (std::size_t i = 0; i < 3; ++i) v.types[i] = TokenType::control;
  v.bos = 1;
  v.eos = 2;
  v.padding = 2;
  v.end_of_generation = {0, 2};
  return v;
}

/// The same vocabulary as the text of a tokenizer.json.
inline std::string mini_tokenizer_json() {
  using json = nlohmann::ordered_json;
  const Vocab v = mini_vocab();
  json added = json::array(), vocab = json::object();
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    vocab[v.tokens[i]] = i;
    if (v.types[i] == TokenType::control)
      added.push_back({{"id", i},
                       {"content", v.tokens[i]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  }
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  const json root = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", json::array({digits, byte_level})}}},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", v.merges}}}};
  return root.dump(1);
}

}  // namespace lab::test
