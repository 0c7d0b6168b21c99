#include "lab/model/hf_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/core/mapped_file.hpp"
#include "lab/model/byte_alphabet.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

using Json = nlohmann::json;

// More than any model has; a damaged id must not make us allocate gigabytes.
constexpr std::int64_t kMaxTokens = 1 << 20;

// The contractions, letters, punctuation and white space of Llama 3 and of Qwen 2, which
// differ in how many digits stay together.
constexpr std::string_view kLlama3 =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr std::string_view kQwen2 =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

// ----- reading JSON

// An absent member reads as null.
const Json& member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

// Lists and objects by their kind only: what is inside may be deep and large.
std::string shown(const Json& value) {
  if (value.is_string()) return detail::quote(value.get_ref<const std::string&>());
  return value.is_structured() ? std::string("an ") + value.type_name() : value.dump();
}

const std::string& text_of(const Json& value, const char* what) {
  LAB_CHECK(value.is_string(), "{} is {}, but it must be a text: the file is damaged", what,
            shown(value));
  return value.get_ref<const std::string&>();
}

bool flag(const Json& object, const char* name, bool absent) {
  const Json& value = member(object, name);
  if (value.is_null()) return absent;
  LAB_CHECK(value.is_boolean(),
            "{} is {}, but it must be true or false: the file is damaged", name,
            shown(value));
  return value.get<bool>();
}

std::int32_t id_of(const Json& value, const char* what) {
  const bool in_range = value.is_number_integer() && value >= 0 && value < kMaxTokens;
  LAB_CHECK(in_range, "the id of {} is {}, but ids are whole numbers from 0 to {}", what,
            shown(value), kMaxTokens - 1);
  return value.get<std::int32_t>();
}

bool is_type(const Json& object, std::string_view type) {
  const Json& value = member(object, "type");
  return value.is_string() && value.get_ref<const std::string&>() == type;
}

// A step, or the steps of a Sequence (in its member `list`).
std::vector<const Json*> steps_of(const Json& step, const char* list) {
  if (step.is_null()) return {};
  if (!is_type(step, "Sequence")) return {&step};
  std::vector<const Json*> steps;
  for (const Json& part : member(step, list)) steps.push_back(&part);
  return steps;
}

std::string types_of(std::span<const Json* const> steps) {
  std::string types;
  for (const Json* step : steps) {
    if (!types.empty()) types += ", ";
    types += shown(member(*step, "type"));
  }
  return types.empty() ? "none" : types;
}

// ----- the parts of the file

bool is_byte_level(const Json& step, bool use_regex) {
  return is_type(step, "ByteLevel") && !flag(step, "add_prefix_space", true) &&
         flag(step, "use_regex", true) == use_regex;
}

bool is_split(const Json& step, std::string_view regex) {
  const Json& pattern = member(member(step, "pattern"), "Regex");
  const Json& behavior = member(step, "behavior");
  return is_type(step, "Split") && pattern == regex && behavior == "Isolated" &&
         !flag(step, "invert", false);
}

std::string pre_tokenizer_name(const Json& root) {
  const std::vector<const Json*> steps =
      steps_of(member(root, "pre_tokenizer"), "pretokenizers");
  if (steps.size() == 1 && is_byte_level(*steps[0], true)) return "gpt-2";
  if (steps.size() == 2) {
    const bool digits =
        is_type(*steps[0], "Digits") && flag(*steps[0], "individual_digits", false);
    if (digits && is_byte_level(*steps[1], true)) return "smollm";
    if (is_byte_level(*steps[1], false)) {
      if (is_split(*steps[0], kLlama3)) return "llama-bpe";
      if (is_split(*steps[0], kQwen2)) return "qwen2";
    }
  }
  throw Error(fmt::format(
      "the pre-tokenizer ({}) is not that of GPT-2, SmolLM, Llama 3 or Qwen 2 with their "
      "options: use a model with one of these",
      types_of(steps)));
}

void check_unsupported(const Json& root, const Json& model) {
  const Json& type = member(model, "type");
  LAB_CHECK(
      type.is_null() || type == "BPE",
      "the tokenizer's model is {}, but only byte-level BPE is supported: use a model "
      "with such a tokenizer",
      shown(type));
  const Json& normalizer = member(root, "normalizer");
  LAB_CHECK(normalizer.is_null(),
            "the tokenizer normalizes text first ({}), which is not supported: use a model "
            "whose normalizer is null",
            shown(member(normalizer, "type")));
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix", "dropout"}) {
    const Json& value = member(model, name);
    LAB_CHECK(value.is_null() || value == "" || value == 0.0,
              "the tokenizer's model has {} {}, which byte-level BPE does not have: use a "
              "model whose tokenizer is byte-level BPE",
              name, shown(value));
  }
  LAB_CHECK(
      !flag(model, "byte_fallback", false),
      "the tokenizer falls back to bytes (byte_fallback), which is SentencePiece's way: "
      "use a model whose tokenizer is byte-level BPE");
}

void set_token(Vocab& vocab, std::int32_t id, const std::string& text, TokenType type) {
  const auto place = static_cast<std::size_t>(id);
  if (place >= vocab.tokens.size()) {
    vocab.tokens.resize(place + 1);
    vocab.types.resize(place + 1, TokenType::unused);
  }
  LAB_CHECK(vocab.types[place] == TokenType::unused || vocab.tokens[place] == text,
            "two tokens, {} and {}, have the id {}: the file is damaged",
            detail::quote(vocab.tokens[place]), detail::quote(text), id);
  vocab.tokens[place] = text;
  vocab.types[place] = type;
}

void read_tokens(const Json& root, const Json& model, Vocab& vocab) {
  const Json& table = member(model, "vocab");
  LAB_CHECK(table.is_object() && !table.empty(),
            "there is no model.vocab table of tokens, so this is not a BPE tokenizer.json");
  for (const auto& [text, id] : table.items())
    set_token(vocab, id_of(id, "a token"), text, TokenType::normal);
  const Json& added = member(root, "added_tokens");
  LAB_CHECK(added.is_null() || added.is_array(),
            "added_tokens is not a list: the file is damaged");
  for (const Json& token : added) {
    const std::string& text = text_of(member(token, "content"), "an added token's content");
    for (const char* option : {"single_word", "lstrip", "rstrip"})
      LAB_CHECK(!flag(token, option, false),
                "the added token {} has the option {}, which is not supported: use a model "
                "without it",
                detail::quote(text), option);
    set_token(vocab, id_of(member(token, "id"), "an added token"), text,
              flag(token, "special", false) ? TokenType::control : TokenType::user_defined);
  }
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id)
    if (vocab.types[id] == TokenType::unused) vocab.tokens[id] = fmt::format("[PAD{}]", id);
}

void read_merges(const Json& model, Vocab& vocab) {
  const Json& merges = member(model, "merges");
  LAB_CHECK(merges.is_array(), "model.merges is not a list: the file is damaged");
  for (const Json& merge : merges) {
    if (!merge.is_array()) {
      vocab.merges.push_back(text_of(merge, "a merge"));
      continue;
    }
    LAB_CHECK(merge.size() == 2, "a merge is {}, but a merge joins two tokens",
              shown(merge));
    const std::string& left = text_of(merge[0], "a merge's first token");
    const std::string& right = text_of(merge[1], "a merge's second token");
    LAB_CHECK(
        left.find(' ') == std::string::npos && right.find(' ') == std::string::npos,
        "the merge of {} and {} has a token with a space in it, but byte-level BPE writes "
        "spaces as U+0120",
        detail::quote(left), detail::quote(right));
    vocab.merges.push_back(left + " " + right);
  }
}

// With an unknown token, bytes without a token would become that one and not be left out.
void check_unknown(const Json& model, const Vocab& vocab) {
  const Json& unknown = member(model, "unk_token");
  if (unknown.is_null() || unknown == "") return;
  const Json& table = member(model, "vocab");
  for (int byte = 0; byte < 256; ++byte)
    LAB_CHECK(
        table.contains(alphabet_letter(static_cast<std::uint8_t>(byte))),
        "the tokenizer has an unknown token ({}) and no token for byte {}, which is not "
        "supported: use a model whose {} tokens cover all bytes",
        shown(unknown), byte, vocab.tokens.size());
}

// The template of a single text must be `text` or `bos text`.
void read_bos(const Json& root, Vocab& vocab) {
  for (const Json* step : steps_of(member(root, "post_processor"), "processors")) {
    if (is_type(*step, "ByteLevel")) continue;
    const Json& single = member(*step, "single");
    LAB_CHECK(
        is_type(*step, "TemplateProcessing") && single.is_array() && !single.empty() &&
            single.size() <= 2 && single.back().contains("Sequence"),
        "the post-processor ({}) does more than to put one token in front of the text: "
        "use a model with a simpler one",
        types_of(std::span(&step, 1)));
    if (single.size() == 1) continue;
    const Json& special = member(single.front(), "SpecialToken");
    const std::string& name = text_of(member(special, "id"), "the bos token");
    const Json& ids = member(member(member(*step, "special_tokens"), name.c_str()), "ids");
    LAB_CHECK(
        ids.is_array() && ids.size() == 1,
        "the post-processor puts {} in front of the text but does not give its one id: "
        "the file is damaged",
        detail::quote(name));
    vocab.bos = id_of(ids.front(), "the bos token");
    LAB_CHECK(
        *vocab.bos < std::ssize(vocab.tokens),
        "the bos token has the id {}, but there are only {} tokens: the file is damaged",
        *vocab.bos, vocab.tokens.size());
    vocab.add_bos = true;
  }
}

}  // namespace

Vocab parse_hf_tokenizer(std::string_view json_text) {
  const Json root = Json::parse(json_text, nullptr, false);
  LAB_CHECK(root.is_object(),
            "this is not a tokenizer.json: it is not one well-formed JSON object");
  const Json& model = member(root, "model");
  check_unsupported(root, model);
  Vocab vocab;
  vocab.pre = pre_tokenizer_name(root);
  vocab.ignore_merges = flag(model, "ignore_merges", false);
  read_tokens(root, model, vocab);
  read_merges(model, vocab);
  check_unknown(model, vocab);
  read_bos(root, vocab);
  return vocab;
}

Vocab load_hf_vocab(const std::filesystem::path& tokenizer_json) {
  const MappedFile file(tokenizer_json);
  const std::span<const std::byte> bytes = file.bytes();
  try {
    return parse_hf_tokenizer({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", tokenizer_json.string(), error.what()));
  }
}

}  // namespace lab
