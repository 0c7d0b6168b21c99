/// @file
/// Beam search: the answer as a whole should be likely, not each token for itself.
#pragma once

#include <vector>

#include "lab/decode/generate.hpp"
#include "lab/decode/sequence_store.hpp"

namespace lab {

/// Settings of a beam search.
struct BeamOptions {
  std::int64_t beam_width = 4;
  std::int64_t max_tokens = 128;
  /// An answer's score is the sum of its tokens' log probabilities divided by their number
  /// to this power: 0 prefers short answers, 1 compares averages (Wu et al. 2016,
  /// arXiv:1609.08144, section 7, in the form that transformers and vLLM use).
  double length_penalty = 1;
  /// Stop at beam_width ended answers; otherwise go on while a live one, as it is, scores
  /// higher than the worst of them.
  bool early_stopping = true;
  bool ignore_end = false;
  std::int64_t prefill_chunk = kPrefillChunk;  ///< prompt tokens in one forward pass
};

/// One answer.
struct Beam {
  std::vector<std::int32_t> ids;  ///< with the end token, if there was one
  double log_probability = 0;     ///< of all of them, natural logarithm
  double score = 0;
  FinishReason finish_reason = FinishReason::length;
};

/// Keeps the beam_width most likely beginnings of an answer at every step. Ties go to the
/// beam that was better before, then to the lower token. A width of 1 is greedy decoding.
/// @return at most beam_width answers, best first
/// @throws Error if an option is out of range, the prompt does not fit, or a logit is NaN
/// @par Source Graves 2012, arXiv:1211.3711, section 3; Sutskever et al. 2014,
///      arXiv:1409.3215, section 3.2
std::vector<Beam> beam_search(Model& model, SequenceStore& store,
                              const std::vector<std::int32_t>& prompt,
                              const BeamOptions& options);

}  // namespace lab
