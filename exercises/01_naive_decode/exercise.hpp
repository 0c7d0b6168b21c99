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
  // Your code here.
  throw std::logic_error("exercise 01, task 1: softmax is not written yet");
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
  // Your code here.
  throw std::logic_error("exercise 01, task 2: top_p is not written yet");
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
  // Your code here.
  throw std::logic_error("exercise 01, task 3: attention is not written yet");
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
  // Your code here.
  throw std::logic_error("exercise 01, task 4: generate is not written yet");
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
  // Your code here.
  throw std::logic_error("exercise 01, task 5: latency is not written yet");
}

}  // namespace exercise
