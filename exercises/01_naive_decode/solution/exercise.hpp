/// @file
/// Exercise 01: the steps from scores to text. Write the five functions; README.md says
/// how.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

/// Task 1. The softmax of one row: exp(x_i) / sum_j exp(x_j), for scores of any size.
/// @param scores  at least one of them finite; -inf means "never" and gets exactly 0
/// @return weights that add up to 1, as many as scores
inline std::vector<float> softmax(std::span<const float> scores) {
  // BEGIN SOLUTION
  const float largest = *std::max_element(scores.begin(), scores.end());
  std::vector<float> weights(scores.size());
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    weights[i] = std::exp(scores[i] - largest);
    sum += double(weights[i]);
  }
  for (float& weight : weights) weight = static_cast<float>(double(weight) / sum);
  return weights;
  // SKELETON
  // throw std::logic_error("exercise 01, task 1: softmax is not written yet");
  // END SOLUTION
}

/// A token and its probability.
struct Candidate {
  std::int32_t id;
  float probability;
};

/// Task 2. Top-p sampling's choice of candidates: the smallest set of the most likely
/// tokens that is at least `p` likely together.
/// @param probabilities  (V); the token's id is its index
/// @param p              above 0, at most 1
/// @return the set, most likely first, ties by lower id; its probabilities add up to 1
inline std::vector<Candidate> top_p(std::span<const float> probabilities, double p) {
  // BEGIN SOLUTION
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    candidates.push_back({static_cast<std::int32_t>(i), probabilities[i]});
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) {
              if (a.probability != b.probability) return a.probability > b.probability;
              return a.id < b.id;
            });
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates.size() && sum < p) sum += double(candidates[kept++].probability);
  candidates.resize(kept);
  for (Candidate& c : candidates) c.probability = static_cast<float>(c.probability / sum);
  return candidates;
  // SKELETON
  // throw std::logic_error("exercise 01, task 2: top_p is not written yet");
  // END SOLUTION
}

/// The sizes of one call of attention.
struct AttentionShape {
  std::size_t n_tokens;    ///< T: queries, the last T of the text
  std::size_t kv_len;      ///< S: keys and values, S >= T
  std::size_t n_heads;     ///< H
  std::size_t n_kv_heads;  ///< K, a divisor of H
  std::size_t head_dim;    ///< Dh
};

/// A softmax that is known to be right, so that task 3 does not depend on task 1.
using Softmax = std::function<std::vector<float>(std::span<const float>)>;

/// Task 3. Causal grouped-query attention. Query t stands at position S - T + t and sees
/// the keys of its own and all earlier positions; query head h reads key/value head h K /
/// H.
/// @param q        (T, H, Dh)
/// @param k,v      (S, K, Dh)
/// @param softmax  turns one query's scores, q . k / sqrt(Dh), into weights
/// @return (T, H, Dh): for each query and head the weighted sum of the values it sees
inline std::vector<float> attention(std::span<const float> q, std::span<const float> k,
                                    std::span<const float> v, const AttentionShape& shape,
                                    const Softmax& softmax) {
  // BEGIN SOLUTION
  const auto [T, S, H, K, Dh] = shape;
  const float scale = 1 / std::sqrt(static_cast<float>(Dh));
  std::vector<float> out(T * H * Dh);  // (T, H, Dh)
  for (std::size_t t = 0; t < T; ++t) {
    const std::size_t visible = S - T + t + 1;
    for (std::size_t h = 0; h < H; ++h) {
      const std::size_t kv_head = h * K / H;
      const auto query = q.subspan((t * H + h) * Dh, Dh);
      std::vector<float> scores(visible);
      for (std::size_t s = 0; s < visible; ++s) {
        const auto key = k.subspan((s * K + kv_head) * Dh, Dh);
        scores[s] =
            scale * std::inner_product(query.begin(), query.end(), key.begin(), 0.0f);
      }
      const std::vector<float> weights = softmax(scores);
      for (std::size_t s = 0; s < visible; ++s)
        for (std::size_t d = 0; d < Dh; ++d)
          out[(t * H + h) * Dh + d] += weights[s] * v[(s * K + kv_head) * Dh + d];
    }
  }
  return out;
  // SKELETON
  // throw std::logic_error("exercise 01, task 3: attention is not written yet");
  // END SOLUTION
}

/// The model: the id of the next token after a text.
using NextToken = std::function<std::int32_t(std::span<const std::int32_t>)>;

/// Task 4. The generation loop: asks for one token after another, each after the prompt and
/// everything generated so far.
/// @param max_tokens  the loop ends after this many tokens; 0 asks for none
/// @param end_token   the loop ends at this token, which is not part of the answer
/// @return the generated tokens, without the prompt
inline std::vector<std::int32_t> generate(const NextToken& next_token,
                                          std::span<const std::int32_t> prompt,
                                          std::size_t max_tokens, std::int32_t end_token) {
  // BEGIN SOLUTION
  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  while (text.size() < prompt.size() + max_tokens) {
    const std::int32_t token = next_token(text);
    if (token == end_token) break;
    text.push_back(token);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
  // SKELETON
  // throw std::logic_error("exercise 01, task 4: generate is not written yet");
  // END SOLUTION
}

/// What a user waits for, in milliseconds.
struct Latency {
  double ttft_ms;  ///< time to first token: from the request's arrival to the first token
  double tpot_ms;  ///< time per output token: the mean gap between tokens; 0 for one token
};

/// Task 5. The latency of one request.
/// @param arrival_ms  when the request came
/// @param token_ms    when each of its tokens came out, in order
/// @throws std::invalid_argument if there is no token
inline Latency latency(double arrival_ms, std::span<const double> token_ms) {
  // BEGIN SOLUTION
  if (token_ms.empty()) throw std::invalid_argument("latency: there is no token");
  const double n_gaps = static_cast<double>(token_ms.size() - 1);
  const double between = token_ms.back() - token_ms.front();
  return {token_ms.front() - arrival_ms, n_gaps > 0 ? between / n_gaps : 0};
  // SKELETON
  // throw std::logic_error("exercise 01, task 5: latency is not written yet");
  // END SOLUTION
}

}  // namespace exercise
