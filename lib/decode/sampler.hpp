/// @file
/// From logits to the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/core/rng.hpp"

namespace lab {

/// How the next token is drawn. The defaults are greedy.
struct SamplingParams {
  double temperature = 0;  ///< divides the logits; 0: the most likely token, always
  std::int64_t top_k = 0;  ///< keep the k most likely; 0: all
  double top_p = 1;        ///< keep the smallest set with probability >= p
  double min_p = 0;        ///< keep tokens at least min_p times as likely as the best
  double repetition_penalty = 1;  ///< weakens tokens that occurred already; 1: off
  std::uint64_t seed = 0;

  /// @throws Error naming the parameter, its value and its range
  void validate() const;
};

/// A token and its probability.
struct Candidate {
  std::int32_t id;
  double probability;
};

/// Draws tokens. The filters run in this order, each on what the one before has left:
/// repetition penalty, temperature, top-k, top-p, min-p; what remains is normalised and
/// drawn.
///
/// Sources: top-k Fan et al. 2018, arXiv:1805.04833, section 5.4; top-p Holtzman et al.
/// 2020, arXiv:1904.09751, section 3.1; min-p Nguyen et al. 2024, arXiv:2407.01082, section
/// 3; repetition penalty Keskar et al. 2019, arXiv:1909.05858, section 4.1.
class Sampler {
 public:
  explicit Sampler(const SamplingParams& params);

  /// @param logits   (V)
  /// @param history  prompt and generated tokens so far, for the repetition penalty
  /// @throws Error if a logit is NaN or none is finite
  std::int32_t sample(std::span<const float> logits, std::span<const std::int32_t> history);

  /// The distribution that sample() draws from, most likely first; ties by lower id.
  std::vector<Candidate> distribution(std::span<const float> logits,
                                      std::span<const std::int32_t> history) const;

 private:
  SamplingParams params_;
  Rng rng_;
};

}  // namespace lab
