#include "lab/decode/metrics.hpp"

namespace lab {
namespace {

double ms(RequestMetrics::Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace

double RequestMetrics::ttft_ms() const {
  return times_.empty() ? 0 : ms(times_.front() - arrival_);
}

double RequestMetrics::tpot_ms() const {
  if (times_.size() < 2) return 0;
  return ms(times_.back() - times_.front()) / static_cast<double>(times_.size() - 1);
}

double RequestMetrics::latency_ms() const {
  return times_.empty() ? 0 : ms(times_.back() - arrival_);
}

std::vector<double> RequestMetrics::itl_ms() const {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times_.size(); ++i)
    gaps.push_back(ms(times_[i] - times_[i - 1]));
  return gaps;
}

double RequestMetrics::prefill_tokens_per_s() const {
  const double t = ttft_ms();
  return t > 0 ? 1000.0 * static_cast<double>(prompt_tokens_) / t : 0;
}

double RequestMetrics::decode_tokens_per_s() const {
  const double t = tpot_ms();
  return t > 0 ? 1000.0 / t : 0;
}

}  // namespace lab
