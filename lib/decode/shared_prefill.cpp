#include "lab/decode/shared_prefill.hpp"

#include <algorithm>

#include "lab/core/error.hpp"

namespace lab {

void add_gap(ForwardBatch& batch, SequenceStore& store, std::int64_t sequence,
             std::span<const std::int32_t> text) {
  store.grow(sequence, std::ssize(text));
  const std::int64_t length = store.length(sequence);
  batch.add(sequence, length, text.subspan(std::size_t(length)));
}

SharedPrefill::SharedPrefill(Model& model, SequenceStore& store,
                             const std::vector<std::int32_t>& prompt, std::int64_t chunk)
    : store_(store) {
  check_context(model.config(), std::ssize(prompt));
  LAB_CHECK(chunk >= 1, "the prefill chunk is {} tokens; give a number >= 1", chunk);
  prompt_ = store.open(prompt);
  for (std::int64_t at = store.length(prompt_); at < std::ssize(prompt);) {
    const std::int64_t end = std::min(at + chunk, std::ssize(prompt));
    const std::span text(prompt.data(), std::size_t(end));
    ForwardBatch batch;
    add_gap(batch, store, prompt_, text);
    const auto logits = row_of(model.transformer().forward(batch, store.cache()), 0);
    store.stored(prompt_, text);
    logits_.assign(logits.begin(), logits.end());
    at = end;
  }
}

}  // namespace lab
