#include "lab/model/tokenizer.hpp"

#include <algorithm>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/model/bpe.hpp"
#include "lab/model/byte_alphabet.hpp"
#include "lab/model/parse_support.hpp"
#include "lab/model/pre_tokenizer.hpp"
#include "lab/model/tokenizer_specials.hpp"
#include "lab/model/utf8.hpp"

namespace lab {
namespace {

void check_id(const Vocab& vocab, std::optional<std::int32_t> id, std::string_view what) {
  LAB_CHECK(
      !id || (*id >= 0 && *id < std::ssize(vocab.tokens)),
      "the vocabulary says that its {} token is {}, but it has the tokens 0 to {}: the "
      "model file is damaged",
      what, id.value_or(0), std::ssize(vocab.tokens) - 1);
}

Vocab checked(Vocab vocab) {
  LAB_CHECK(!vocab.tokens.empty(),
            "the vocabulary is empty: the model file has no tokenizer");
  LAB_CHECK(vocab.tokens.size() < std::numeric_limits<std::int32_t>::max(),
            "the vocabulary has {} tokens, but an id has 31 bits", vocab.tokens.size());
  LAB_CHECK(vocab.types.size() == vocab.tokens.size(),
            "the vocabulary has {} tokens but {} token types: the model file is damaged",
            vocab.tokens.size(), vocab.types.size());
  for (std::size_t i = 0; i < vocab.types.size(); ++i)
    LAB_CHECK(vocab.types[i] >= TokenType::normal && vocab.types[i] <= TokenType::unused,
              "token {} ({}) has type {}, but byte-level BPE has the types 1 to 5: use a "
              "model whose tokenizer is byte-level BPE",
              i, detail::quote(vocab.tokens[i]), static_cast<int>(vocab.types[i]));
  check_id(vocab, vocab.bos, "bos");
  check_id(vocab, vocab.eos, "eos");
  check_id(vocab, vocab.unknown, "unknown");
  check_id(vocab, vocab.padding, "padding");
  for (const std::int32_t id : vocab.end_of_generation) check_id(vocab, id, "end");
  LAB_CHECK(!vocab.add_bos || vocab.bos,
            "the vocabulary wants a bos token before each prompt but names none: the model "
            "file is damaged");
  return vocab;
}

// A normal token with a letter outside the alphabet can only have been meant as raw text.
std::string piece_of(const std::string& text, TokenType type) {
  if (type == TokenType::unused) return {};
  if (type == TokenType::normal) return from_alphabet(text).value_or(text);
  return text;
}

}  // namespace

struct Tokenizer::Data {
  explicit Data(Vocab checked_vocab)
      : vocab(std::move(checked_vocab)), bpe(vocab), pre_tokenizer(vocab.pre) {
    for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
      const TokenType type = vocab.types[i];
      const auto id = static_cast<std::int32_t>(i);
      pieces.push_back(piece_of(vocab.tokens[i], type));
      if (type == TokenType::user_defined) user_defined.add(vocab.tokens[i], id);
      if (type != TokenType::normal && type != TokenType::unused)
        specials.add(vocab.tokens[i], id);
    }
    ends = vocab.end_of_generation;
    if (vocab.eos) ends.push_back(*vocab.eos);
  }

  void append_text(std::string_view text, std::vector<std::int32_t>& ids) const {
    for (const std::string_view word : pre_tokenizer.split(text)) bpe.append_ids(word, ids);
  }

  Vocab vocab;
  Bpe bpe;
  PreTokenizer pre_tokenizer;
  SpecialMatcher user_defined, specials;  // specials holds the user-defined ones too
  std::vector<std::string> pieces;        // (V), bytes
  std::vector<std::int32_t> ends;
};

Tokenizer::Tokenizer(Vocab vocab)
    : data_(std::make_unique<const Data>(checked(std::move(vocab)))) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            Specials specials) const {
  LAB_CHECK(text.size() < std::size_t{1} << 30,
            "the text has {} bytes, but at most 1 GiB can be tokenized: split it",
            text.size());
  const std::string clean = sanitize_utf8(text);
  const std::string_view rest = clean;
  const SpecialMatcher& matcher =
      specials == Specials::parse ? data_->specials : data_->user_defined;
  std::vector<std::int32_t> ids;
  std::size_t begin = 0;
  while (const auto match = matcher.find(rest, begin)) {
    data_->append_text(rest.substr(begin, match->begin - begin), ids);
    ids.push_back(match->id);
    begin = match->begin + match->length;
  }
  data_->append_text(rest.substr(begin), ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids,
                              ControlTokens control) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    const std::string_view token = piece(id);
    if (control == ControlTokens::keep || !is_control(id)) bytes += token;
  }
  return bytes;
}

std::string_view Tokenizer::piece(std::int32_t id) const {
  LAB_CHECK(
      id >= 0 && id < size(),
      "token id {} was asked for, but the vocabulary has the ids 0 to {}: give ids that "
      "this model's tokenizer made",
      id, size() - 1);
  return data_->pieces[id];
}

std::optional<std::int32_t> Tokenizer::find_special(std::string_view text) const {
  const auto match = data_->specials.find(text, 0);
  if (!match || match->length != text.size()) return std::nullopt;
  return match->id;
}

bool Tokenizer::is_end(std::int32_t id) const {
  return std::find(data_->ends.begin(), data_->ends.end(), id) != data_->ends.end();
}

bool Tokenizer::is_control(std::int32_t id) const {
  return id >= 0 && id < size() && data_->vocab.types[id] == TokenType::control;
}

const Vocab& Tokenizer::vocab() const { return data_->vocab; }
std::int64_t Tokenizer::size() const { return std::ssize(data_->vocab.tokens); }

std::vector<std::int32_t> prompt_ids(const Tokenizer& tokenizer, std::string_view text,
                                     Specials specials) {
  std::vector<std::int32_t> ids = tokenizer.encode(text, specials);
  if (tokenizer.vocab().add_bos) ids.insert(ids.begin(), *tokenizer.vocab().bos);
  return ids;
}

}  // namespace lab
