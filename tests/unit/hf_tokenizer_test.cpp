// tokenizer.json: what is read from it, and what is refused.
#include "lab/model/hf_tokenizer.hpp"

#include <fstream>

#include "golden/tokenizer/golden.hpp"
#include "support/catch.hpp"

using lab::parse_hf_tokenizer;
using lab::TokenType;
using nlohmann::json;

namespace {

const char* const kLlama =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
const char* const kQwen =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}
json sequence(std::initializer_list<json> steps) {
  return {{"type", "Sequence"}, {"pretokenizers", json(std::vector<json>(steps))}};
}
json split(const std::string& regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}
json digits(bool individual) {
  return {{"type", "Digits"}, {"individual_digits", individual}};
}
json bos_template(const char* id) {
  return {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", id}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {7}}, {"tokens", {"<s>"}}}}}}};
}

json small() {
  json j;
  j["normalizer"] = nullptr;
  j["pre_tokenizer"] = byte_level(true);
  j["post_processor"] = nullptr;
  j["added_tokens"] = {{{"id", 7}, {"content", "<s>"}, {"special", true}},
                       {{"id", 5}, {"content", "<t>"}, {"special", false}}};
  j["model"] = {{"type", "BPE"},
                {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"\u0120", 3}}},
                {"merges", {"a b"}}};
  return j;
}

template <class Change>
lab::Vocab parsed(Change&& change) {
  json j = small();
  change(j);
  return parse_hf_tokenizer(j.dump());
}
template <class Change>
void refuses(Change&& change, const char* message) {
  CHECK_THROWS_WITH(parsed(change), ContainsSubstring(message));
}

}  // namespace

TEST_CASE("tokenizer.json: tokens, types, merges") {
  const lab::Vocab v = parsed([](json&) {});
  CHECK(v.pre == "gpt-2");
  CHECK(v.tokens == std::vector<std::string>{"a", "b", "ab", "\u0120", "[PAD4]", "<t>",
                                             "[PAD6]", "<s>"});
  CHECK(v.types == std::vector{TokenType::normal, TokenType::normal, TokenType::normal,
                               TokenType::normal, TokenType::unused,
                               TokenType::user_defined, TokenType::unused,
                               TokenType::control});
  CHECK(v.merges == std::vector<std::string>{"a b"});
  CHECK_FALSE(v.ignore_merges);
  CHECK_FALSE(v.add_bos);
  CHECK_FALSE(v.bos);
  const lab::Tokenizer t(v);
  CHECK(t.encode("ab a<t>") == std::vector<std::int32_t>{2, 3, 0, 5});
}

TEST_CASE("tokenizer.json: an added token can also be in the vocabulary") {
  const lab::Vocab v = parsed([](json& j) { j["model"]["vocab"]["<s>"] = 7; });
  CHECK(v.types[7] == TokenType::control);
}

TEST_CASE("tokenizer.json: merges as pairs, ignore_merges") {
  const lab::Vocab v = parsed([](json& j) {
    j["model"]["merges"] = json::array({json::array({"a", "b"})});
    j["model"]["ignore_merges"] = true;
  });
  CHECK(v.merges == std::vector<std::string>{"a b"});
  CHECK(v.ignore_merges);
}

TEST_CASE("tokenizer.json: the four pre-tokenizers are recognised by their structure") {
  const auto pre = [](json step) {
    return parsed([&](json& j) { j["pre_tokenizer"] = std::move(step); }).pre;
  };
  CHECK(pre(byte_level(true)) == "gpt-2");
  CHECK(pre({{"type", "ByteLevel"}, {"add_prefix_space", false}}) == "gpt-2");
  CHECK(pre(sequence({byte_level(true)})) == "gpt-2");
  CHECK(pre(sequence({digits(true), byte_level(true)})) == "smollm");
  CHECK(pre(sequence({split(kLlama), byte_level(false)})) == "llama-bpe");
  CHECK(pre(sequence({split(kQwen), byte_level(false)})) == "qwen2");
}

TEST_CASE("tokenizer.json: other pre-tokenizers are refused, and named") {
  const auto refuses_pre = [](json step, const char* message) {
    refuses([&](json& j) { j["pre_tokenizer"] = std::move(step); }, message);
  };
  refuses_pre(nullptr, "none");
  refuses_pre({{"type", "Metaspace"}}, "'Metaspace'");
  refuses_pre(byte_level(false), "'ByteLevel'");
  refuses_pre({{"type", "ByteLevel"}}, "'ByteLevel'");  // add_prefix_space is true
  refuses_pre(sequence({digits(false), byte_level(true)}), "'Digits', 'ByteLevel'");
  refuses_pre(sequence({digits(true), byte_level(false)}), "'Digits'");
  refuses_pre(sequence({byte_level(true), digits(true)}), "'ByteLevel', 'Digits'");
  refuses_pre(sequence({split("x+"), byte_level(false)}), "'Split', 'ByteLevel'");
  refuses_pre(sequence({split(kLlama), byte_level(true)}), "'Split'");
  refuses_pre(sequence({split(kLlama), digits(true), byte_level(false)}), "'Digits'");
  json removed = split(kLlama);
  removed["behavior"] = "Removed";
  refuses_pre(sequence({removed, byte_level(false)}), "'Split'");
  json inverted = split(kLlama);
  inverted["invert"] = true;
  refuses_pre(sequence({inverted, byte_level(false)}), "'Split'");
  refuses_pre(sequence({sequence({byte_level(true)})}), "'Sequence'");
  refuses_pre("text", "pre-tokenizer");
  refuses_pre(sequence({nullptr}), "pre-tokenizer");
}

TEST_CASE("tokenizer.json: bos comes from the post-processor's template") {
  const lab::Vocab v = parsed([](json& j) { j["post_processor"] = bos_template("<s>"); });
  CHECK(v.add_bos);
  CHECK(v.bos == 7);
  const lab::Vocab in_sequence = parsed([](json& j) {
    j["post_processor"] = {{"type", "Sequence"},
                           {"processors", {byte_level(true), bos_template("<s>")}}};
  });
  CHECK(in_sequence.bos == 7);
  const lab::Vocab none = parsed([](json& j) { j["post_processor"] = byte_level(true); });
  CHECK_FALSE(none.add_bos);
  const lab::Vocab only_text = parsed([](json& j) {
    j["post_processor"] = bos_template("<s>");
    j["post_processor"]["single"].erase(0);
  });
  CHECK_FALSE(only_text.add_bos);

  refuses([](json& j) { j["post_processor"] = bos_template("<x>"); }, "'<x>'");
  refuses(
      [](json& j) {
        j["post_processor"] = {{"type", "BertProcessing"}};
      },
      "'BertProcessing'");
  refuses(
      [](json& j) {
        j["post_processor"] = bos_template("<s>");
        j["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "<s>"}}}});
      },
      "TemplateProcessing");
  refuses(
      [](json& j) {
        j["post_processor"] = bos_template("<s>");
        j["post_processor"]["special_tokens"]["<s>"]["ids"] = {99};
      },
      "99");
}

TEST_CASE("tokenizer.json: what byte-level BPE does not have is refused") {
  refuses([](json& j) { j["model"]["type"] = "Unigram"; }, "'Unigram'");
  refuses([](json& j) { j["normalizer"] = {{"type", "NFC"}}; }, "'NFC'");
  refuses([](json& j) { j["model"]["byte_fallback"] = true; }, "byte_fallback");
  refuses([](json& j) { j["model"]["continuing_subword_prefix"] = "##"; }, "'##'");
  refuses([](json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }, "'</w>'");
  refuses([](json& j) { j["model"]["dropout"] = 0.1; }, "dropout 0.1");
  refuses([](json& j) { j["model"]["unk_token"] = "a"; }, "unknown token");
  refuses([](json& j) { j["added_tokens"][0]["lstrip"] = true; }, "lstrip");
  refuses([](json& j) { j["added_tokens"][0]["rstrip"] = true; }, "rstrip");
  refuses([](json& j) { j["added_tokens"][0]["single_word"] = true; }, "single_word");
  CHECK_NOTHROW(parsed([](json& j) {
    j["model"]["dropout"] = nullptr;
    j["model"]["unk_token"] = nullptr;
    j["model"]["end_of_word_suffix"] = "";
    j["model"].erase("type");
    j.erase("normalizer");
    j.erase("added_tokens");
  }));
}

TEST_CASE("tokenizer.json: damaged files are refused") {
  for (const char* text : {"", "{", "[]", "null", "1", "{}", "{\"model\":3}", "\xFF",
                           "[[[[", "{\"model\":{\"type\":\"BPE\"}}"})
    CHECK_THROWS_AS(parse_hf_tokenizer(text), lab::Error);
  CHECK_THROWS_AS(parse_hf_tokenizer(std::string(100000, '[')), lab::Error);
  refuses([](json& j) { j["model"]["vocab"] = json::object(); }, "model.vocab");
  refuses([](json& j) { j["model"]["vocab"] = {1, 2}; }, "model.vocab");
  refuses([](json& j) { j["model"]["vocab"]["c"] = 1; }, "have the id 1");
  refuses([](json& j) { j["model"]["vocab"]["c"] = -1; }, "-1");
  refuses([](json& j) { j["model"]["vocab"]["c"] = 1.5; }, "1.5");
  refuses([](json& j) { j["model"]["vocab"]["c"] = "x"; }, "'x'");
  refuses([](json& j) { j["model"]["vocab"]["c"] = 4000000000; }, "4000000000");
  refuses([](json& j) { j["model"]["vocab"]["c"] = 18446744073709551615u; }, "ids are");
  refuses([](json& j) { j["model"]["merges"] = 1; }, "model.merges");
  refuses([](json& j) { j["model"]["merges"] = {1}; }, "a merge is 1");
  refuses([](json& j) { j["model"]["merges"] = json::array({json::array({"a"})}); },
          "joins two");
  refuses(
      [](json& j) {
        j["model"]["merges"] = json::array({json::array({"a", 1})});
      },
      "second");
  refuses(
      [](json& j) {
        j["model"]["merges"] = json::array({json::array({"a ", "b"})});
      },
      "space");
  refuses([](json& j) { j["added_tokens"] = 1; }, "added_tokens");
  refuses([](json& j) { j["added_tokens"] = {1}; }, "content");
  refuses([](json& j) { j["added_tokens"][0].erase("id"); }, "id of an added token");
  refuses([](json& j) { j["added_tokens"][0]["id"] = 0; }, "have the id 0");
  refuses([](json& j) { j["added_tokens"][0]["special"] = "yes"; }, "true or false");
  refuses([](json& j) { j["model"]["ignore_merges"] = 1; }, "true or false");
}

TEST_CASE("tokenizer.json: from disk, errors name the file") {
  CHECK(lab::load_hf_vocab(golden::path("tokenizer.json")).tokens.size() == 3006);
  CHECK_THROWS_WITH(lab::load_hf_vocab(golden::path("none.json")),
                    ContainsSubstring("none.json"));
  CHECK_THROWS_WITH(
      lab::load_hf_vocab(golden::path("strings.json")),
      ContainsSubstring("strings.json") && ContainsSubstring("tokenizer.json"));
}
