/// @file
/// The one input of the one forward function: a flat batch of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lab {

/// Consecutive tokens of a batch that belong to one sequence, at consecutive positions.
struct Segment {
  std::int64_t sequence = 0;
  std::int64_t begin = 0;     ///< index of its first token in the batch
  std::int64_t count = 0;     ///< tokens
  std::int64_t position = 0;  ///< absolute position of its first token
};

/// T tokens, each with its sequence and its absolute position.
///
/// Prefill is one segment of the prompt's length, decode one segment of one token, a batch
/// of decodes one segment of one token for each sequence. Everything but attention treats
/// the tokens alike and never sees where one sequence ends and the next begins.
class ForwardBatch {
 public:
  /// Adds `tokens` to `sequence`, the first of them at absolute position `position`.
  /// @param all_logits  ask for the logits of every token, instead of the last one's
  /// @throws Error if there are no tokens, the position is negative, or the sequence is
  ///         already in the batch
  void add(std::int64_t sequence, std::int64_t position,
           std::span<const std::int32_t> tokens, bool all_logits = false);

  /// As add(), but asks for no logits: of a chunk of a prompt that goes on in a later pass.
  void add_without_logits(std::int64_t sequence, std::int64_t position,
                          std::span<const std::int32_t> tokens);

  std::int64_t n_tokens() const { return static_cast<std::int64_t>(tokens_.size()); }
  const std::vector<std::int32_t>& tokens() const { return tokens_; }        ///< (T)
  const std::vector<std::int32_t>& positions() const { return positions_; }  ///< (T)
  const std::vector<Segment>& segments() const { return segments_; }
  /// Indices of the tokens whose logits are wanted, rising.
  const std::vector<std::int64_t>& logit_tokens() const { return logit_tokens_; }

 private:
  std::vector<std::int32_t> tokens_, positions_;
  std::vector<Segment> segments_;
  std::vector<std::int64_t> logit_tokens_;
};

/// A batch of one sequence, number 0.
ForwardBatch single_sequence(std::int64_t position, std::span<const std::int32_t> tokens);

}  // namespace lab
