/// @file
/// The prompt of several answers, computed once.
#pragma once

#include <vector>

#include "lab/decode/prefill.hpp"
#include "lab/decode/sequence_store.hpp"
#include "lab/model/model.hpp"

namespace lab {

/// A row of logits (T, V).
inline std::span<const float> row_of(HostView<const float, 2> logits, std::size_t row) {
  const auto r = logits[std::int64_t(row)];
  return {r.data, static_cast<std::size_t>(r.shape[0])};
}

/// Adds to a batch the tokens of `text` that its sequence does not store yet: one, or a few
/// after a fork that shares full blocks only. Makes room for them first.
/// @throws Error if there is none
void add_gap(ForwardBatch& batch, SequenceStore& store, std::int64_t sequence,
             std::span<const std::int32_t> text);

/// Computes a prompt, and gives out sequences that go on from its end.
class SharedPrefill {
 public:
  /// @throws Error if the prompt does not fit into the context or the store
  SharedPrefill(Model& model, SequenceStore& store, const std::vector<std::int32_t>& prompt,
                std::int64_t chunk);
  /// Another sequence that holds the prompt.
  std::int64_t take() { return store_.fork(prompt_); }
  /// No more will be taken.
  void done() { store_.close(prompt_); }
  /// What follows the prompt: (V).
  std::span<const float> logits() const { return logits_; }

 private:
  SequenceStore& store_;
  std::int64_t prompt_;
  std::vector<float> logits_;
};

}  // namespace lab
