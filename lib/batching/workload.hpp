/// @file
/// Requests as users would send them: when, and how long.
#pragma once

#include <vector>

#include "lab/batching/request.hpp"

namespace lab {

/// How arrivals are spread over time. All have the same mean rate.
enum class Arrivals {
  /// Independent gaps with a gamma distribution. burstiness is its shape: 1 is a Poisson
  /// process, below 1 requests come in clumps, above 1 they come more evenly.
  gamma,
  /// Poisson, but only while a source is on; on and off last exponential times.
  on_off,
  at_once  ///< all at time 0
};

/// A length with a log-normal distribution, as prompts and answers have it: most are short,
/// some very long.
struct LengthDistribution {
  double median = 64;
  double sigma = 0.8;  ///< of the logarithm; 0: always the median
  std::int64_t least = 1, most = 1024;
};

struct WorkloadConfig {
  std::int64_t n_requests = 100;
  double rate = 10;  ///< requests per second
  Arrivals arrivals = Arrivals::gamma;
  double burstiness = 1;
  double on_s = 1, off_s = 4;  ///< mean lengths, of on_off
  LengthDistribution prompt, output;
  std::int64_t vocab_size = 256;  ///< prompts hold tokens 0 to vocab_size - 1
  Slo slo;
  std::uint64_t seed = 0;

  /// @throws Error naming the field, its value and its range
  void validate() const;
};

/// Requests 0 to n_requests - 1, in order of arrival. They ignore the end token, so that
/// max_tokens is the length of the answer. Times, lengths and tokens come from streams of
/// their own: a change of the rate changes no length and no prompt.
/// @throws Error as WorkloadConfig::validate
std::vector<Request> make_workload(const WorkloadConfig& config);

}  // namespace lab
