/// @file
/// The tokenizer's golden data (made by tools/golden/tokenizer.py) for the tests.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/model/chat_template.hpp"
#include "lab/model/hf_tokenizer.hpp"
#include "lab/model/tokenizer.hpp"

namespace golden {

using Ids = std::vector<std::int32_t>;

inline std::filesystem::path path(const std::string& name) {
  return std::filesystem::path(LAB_GOLDEN) / "tokenizer" / name;
}

inline nlohmann::json read(const std::string& name) {
  std::ifstream file(path(name));
  LAB_CHECK(file.good(), "no golden file {}", name);
  return nlohmann::json::parse(file);
}

inline std::vector<std::string> strings() { return read("strings.json"); }

/// The small vocabulary, with another pre-tokenizer.
inline lab::Vocab vocab(const std::string& pre) {
  lab::Vocab v = lab::load_hf_vocab(path("tokenizer.json"));
  v.pre = pre;
  v.ignore_merges = pre == "llama-bpe";
  return v;
}

/// Removes all tokens with one of these letters, and the merges that need them.
inline void remove_letters(lab::Vocab& v, const std::vector<std::string>& letters) {
  const auto has = [&](const std::string& text) {
    for (const std::string& letter : letters)
      if (text.find(letter) != std::string::npos) return true;
    return false;
  };
  for (std::size_t i = 0; i < v.tokens.size(); ++i)
    if (v.types[i] == lab::TokenType::normal && has(v.tokens[i])) {
      v.tokens[i] = "[PAD" + std::to_string(i) + "]";
      v.types[i] = lab::TokenType::unused;
    }
  std::erase_if(v.merges, has);
}

/// What differs from the golden ids, as readable text; empty if nothing does.
inline std::string differences(const lab::Tokenizer& tokenizer, const std::string& file) {
  const std::vector<std::string> texts = strings();
  const nlohmann::json expected = read(file);
  const std::vector<Ids> as_text = expected["as_text"];
  std::vector<Ids> parse = as_text;
  for (const auto& [index, ids] :
       expected["parse"].get<std::vector<std::pair<std::size_t, Ids>>>())
    parse.at(index) = ids;
  std::string report;
  int n = 0;
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (const lab::Specials specials : {lab::Specials::as_text, lab::Specials::parse}) {
      const Ids& want = specials == lab::Specials::as_text ? as_text.at(i) : parse.at(i);
      const Ids got = tokenizer.encode(texts[i], specials);
      if (got != want && ++n <= 10)
        report +=
            nlohmann::json{{"index", i}, {"text", texts[i]}, {"got", got}, {"want", want}}
                .dump() +
            "\n";
    }
  LAB_CHECK(as_text.size() == texts.size() && texts.size() >= 2000, "wrong golden size");
  return n == 0 ? "" : report + std::to_string(n) + " differences";
}

/// As differences, for chats: the conversations of a file with golden ids.
inline std::string chat_differences(const lab::Tokenizer& tokenizer,
                                    const nlohmann::json& chats,
                                    const std::string& template_name) {
  std::string report;
  int compared = 0;
  for (const auto& chat : chats) {
    if (chat["template"] != template_name) continue;
    std::vector<lab::ChatMessage> messages;
    for (const auto& m : chat["messages"]) messages.push_back({m["role"], m["content"]});
    const Ids got =
        lab::apply_chat_template(tokenizer, messages, chat["add_generation_prompt"]);
    if (got != chat["ids"].get<Ids>())
      report += chat.dump() + "\ngot " + nlohmann::json(got).dump() + "\n";
    ++compared;
  }
  LAB_CHECK(compared >= 10, "only {} chats of template {}", compared, template_name);
  return report;
}

}  // namespace golden
