#include "lab/decode/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lab/core/error.hpp"

namespace lab {
namespace {

/// Keskar et al.: towards minus infinity, whatever the sign; once for each distinct token.
void penalize(std::vector<double>& logits, std::span<const std::int32_t> history,
              double penalty) {
  std::vector<std::int32_t> seen(history.begin(), history.end());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const std::int32_t id : seen) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) continue;
    double& v = logits[static_cast<std::size_t>(id)];
    v = v > 0 ? v / penalty : v * penalty;
  }
}

/// Probabilities of sorted, scaled logits.
void softmax(std::vector<Candidate>& sorted) {
  const double largest = sorted.front().probability;
  double sum = 0;
  for (Candidate& c : sorted) sum += c.probability = std::exp(c.probability - largest);
  for (Candidate& c : sorted) c.probability /= sum;
}

// [region top_p]
/// Keeps the smallest set of most likely tokens whose probability reaches top_p.
void keep_top_p(std::vector<Candidate>& sorted, double top_p) {
  double sum = 0;
  std::size_t kept = 0;
  while (kept < sorted.size() && sum < top_p) sum += sorted[kept++].probability;
  sorted.resize(std::max<std::size_t>(1, kept));
}
// [endregion]

void keep_min_p(std::vector<Candidate>& sorted, double min_p) {
  const double least = min_p * sorted.front().probability;
  while (sorted.size() > 1 && sorted.back().probability < least) sorted.pop_back();
}

void normalize(std::vector<Candidate>& sorted) {
  const double sum = std::accumulate(
      sorted.begin(), sorted.end(), 0.0,
      [](double total, const Candidate& c) { return total + c.probability; });
  for (Candidate& c : sorted) c.probability /= sum;
}

}  // namespace

void SamplingParams::validate() const {
  LAB_CHECK(temperature >= 0 && std::isfinite(temperature),
            "temperature is {}; give a number >= 0 (0 is greedy)", temperature);
  LAB_CHECK(top_k >= 0, "top-k is {}; give a number >= 0 (0 keeps all)", top_k);
  LAB_CHECK(top_p > 0 && top_p <= 1, "top-p is {}; give a number above 0 and at most 1",
            top_p);
  LAB_CHECK(min_p >= 0 && min_p <= 1, "min-p is {}; give a number from 0 to 1", min_p);
  LAB_CHECK(repetition_penalty > 0 && std::isfinite(repetition_penalty),
            "the repetition penalty is {}; give a number above 0 (1 is off)",
            repetition_penalty);
}

Sampler::Sampler(const SamplingParams& params) : params_(params), rng_(params.seed) {
  params_.validate();
}

std::vector<Candidate> Sampler::distribution(std::span<const float> logits,
                                             std::span<const std::int32_t> history) const {
  std::vector<double> scaled(logits.begin(), logits.end());
  LAB_CHECK(!scaled.empty(), "sampler: there are no logits");
  for (std::size_t i = 0; i < scaled.size(); ++i)
    LAB_CHECK(!std::isnan(scaled[i]),
              "sampler: the logit of token {} is NaN; the model's weights may be damaged",
              i);
  if (params_.repetition_penalty != 1)
    penalize(scaled, history, params_.repetition_penalty);

  const bool greedy = params_.temperature == 0;
  std::vector<Candidate> sorted(scaled.size());
  for (std::size_t i = 0; i < scaled.size(); ++i)
    sorted[i] = {static_cast<std::int32_t>(i),
                 greedy ? scaled[i] : scaled[i] / params_.temperature};
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
  };
  const std::int64_t k = greedy              ? 1
                         : params_.top_k > 0 ? params_.top_k
                                             : std::ssize(sorted);
  const auto kept = static_cast<std::size_t>(std::min<std::int64_t>(k, std::ssize(sorted)));
  std::partial_sort(sorted.begin(), sorted.begin() + std::ptrdiff_t(kept), sorted.end(),
                    before);
  sorted.resize(kept);
  LAB_CHECK(std::isfinite(sorted.front().probability),
            "sampler: the largest logit is {}; the model's weights may be damaged",
            sorted.front().probability);

  softmax(sorted);
  if (params_.top_p < 1) keep_top_p(sorted, params_.top_p);
  keep_min_p(sorted, params_.min_p);
  normalize(sorted);
  return sorted;
}

std::int32_t Sampler::sample(std::span<const float> logits,
                             std::span<const std::int32_t> history) {
  const std::vector<Candidate> candidates = distribution(logits, history);
  double u = rng_.uniform();
  for (const Candidate& c : candidates)
    if ((u -= c.probability) < 0) return c.id;
  return candidates.back().id;  // rounding may leave u just above zero
}

}  // namespace lab
