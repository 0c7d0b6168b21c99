/// @file
/// The metrics of one request, defined as serving benchmarks define them.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace lab {

/// Collects the times of one request. The clock starts when it is made.
///
/// - TTFT, time to first token: from the request's arrival to its first token.
/// - ITL, inter-token latency: the gaps between tokens, one value for each gap.
/// - TPOT, time per output token: (latency - TTFT) / (tokens - 1), for tokens > 1.
class RequestMetrics {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RequestMetrics(std::int64_t prompt_tokens) : prompt_tokens_(prompt_tokens) {}
  void token() { token_at(Clock::now()); }
  void token_at(Clock::time_point t) { times_.push_back(t); }

  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  std::int64_t output_tokens() const { return static_cast<std::int64_t>(times_.size()); }
  double ttft_ms() const;               ///< 0 before the first token
  double tpot_ms() const;               ///< 0 for fewer than two tokens
  double latency_ms() const;            ///< arrival to last token
  std::vector<double> itl_ms() const;   ///< output_tokens() - 1 gaps
  double prefill_tokens_per_s() const;  ///< prompt tokens / TTFT
  double decode_tokens_per_s() const;   ///< 1 / TPOT

  Clock::time_point arrival() const { return arrival_; }

 private:
  Clock::time_point arrival_ = Clock::now();
  std::int64_t prompt_tokens_;
  std::vector<Clock::time_point> times_;
};

}  // namespace lab
