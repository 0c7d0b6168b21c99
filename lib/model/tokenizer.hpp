/// @file
/// Text to token ids and back: byte-level byte-pair encoding, as GPT-2, Llama 3, SmolLM and
/// Qwen use it. Same ids as Hugging Face's tokenizers library for the same vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/model/vocab.hpp"

namespace lab {

/// What the text of a special token means inside a text.
enum class Specials {
  as_text,  ///< letters like any other: for everything that a user typed
  parse,    ///< the token itself: for text that the program wrote, such as chat scaffolding
};

/// Whether decode writes the texts of control tokens such as <|im_end|>.
enum class ControlTokens { keep, skip };

/// Byte-level BPE tokenizer (Sennrich et al. 2016, arXiv:1508.07909; on bytes: Radford et
/// al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2).
///
/// Immutable after construction: any number of threads may call its const functions.
class Tokenizer {
 public:
  /// @throws Error if a token occurs twice, types and tokens differ in number, a merge is
  ///         malformed, occurs twice or makes a token that is missing, a special id is out
  ///         of range, or the pre-tokenizer is unknown
  explicit Tokenizer(Vocab vocab);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Never adds a bos token (prompt_ids does). Ill-formed UTF-8 is first replaced by
  /// U+FFFD, as sanitize_utf8 does; bytes that the vocabulary lacks are left out.
  ///
  /// User-defined tokens are found in the text always, control tokens only with
  /// Specials::parse: from left to right, the longest at each place.
  std::vector<std::int32_t> encode(std::string_view text,
                                   Specials specials = Specials::as_text) const;

  /// @return the tokens' bytes, which may end inside a character: sanitize_utf8 before
  ///         printing, or use StreamDecoder
  /// @throws Error if an id is not in [0, size())
  std::string decode(std::span<const std::int32_t> ids,
                     ControlTokens control = ControlTokens::keep) const;

  /// @return one token's bytes; empty for unused ids. Valid as long as the tokenizer.
  /// @throws Error if the id is not in [0, size())
  std::string_view piece(std::int32_t id) const;

  /// @return the id of the control or user-defined token with this text
  std::optional<std::int32_t> find_special(std::string_view text) const;

  /// @return whether this token ends an answer (eos and the other end-of-generation tokens)
  bool is_end(std::int32_t id) const;
  bool is_control(std::int32_t id) const;

  const Vocab& vocab() const;
  /// @return V, the number of ids. A model may have more embedding rows than this: their
  /// ids
  ///         are never valid here and must not be sampled.
  std::int64_t size() const;

 private:
  struct Data;
  std::unique_ptr<const Data> data_;
};

/// The ids a model is given for a plain prompt: bos if the vocabulary asks for it
/// (vocab.add_bos), then the text. Every command that feeds a prompt to a model calls this.
std::vector<std::int32_t> prompt_ids(const Tokenizer& tokenizer, std::string_view text,
                                     Specials specials = Specials::as_text);

}  // namespace lab
