/// @file
/// Runs a workload through an engine and says how it went.
#pragma once

#include <string>
#include <vector>

#include "lab/batching/engine.hpp"

namespace lab {

/// What a run of a workload leaves behind.
struct LoadRun {
  std::vector<RequestResult> results;  ///< in the order in which they ended
  std::vector<StepRecord> steps;
};

/// Submits each request when it arrives and steps until all have ended.
/// @param requests  in order of arrival, counted from the call; empty arrival: at once
/// @throws Error as Engine::submit
LoadRun run_load(Engine& engine, std::vector<Request> requests);

/// A sample's mean and percentiles; zeros for an empty one.
struct Summary {
  std::int64_t n = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};
/// Mean and percentiles of `values`; zeros if there are none.
Summary summarize(std::vector<double> values);

/// The value below which a fraction `q` of the sample lies, by linear interpolation between
/// the two nearest (numpy's default). @param sorted  ascending, not empty
double percentile(const std::vector<double>& sorted, double q);

/// The numbers that serving benchmarks report. Times of requests that were aborted or
/// failed are left out of them.
struct LoadReport {
  std::int64_t n_completed = 0, n_aborted = 0, n_failed = 0;
  double duration_s = 0;                           ///< first arrival to last end
  Summary ttft_ms, tpot_ms, latency_ms, queue_ms;  ///< one value for each request
  Summary itl_ms;                                  ///< all gaps of all requests together
  double requests_per_s = 0, output_tokens_per_s = 0;
  double goodput_per_s = 0;  ///< completed requests that met all their objectives
  std::int64_t n_steps = 0, n_tokens = 0, padding = 0;
  std::int64_t n_preemptions = 0, recomputed_tokens = 0, cached_tokens = 0;
  double slot_utilisation = 0;  ///< share of max_num_seqs that runs, over the steps' time
  double kv_held = 0;           ///< share of the KV space that is given out, likewise
  double kv_stored = 0;         ///< share of what is given out that is filled, likewise
  double padding_share = 0;     ///< padding / (tokens and padding)
};

/// @param max_num_seqs, kv_positions  what utilisation is a share of
LoadReport make_report(const LoadRun& run, std::int64_t max_num_seqs,
                       std::int64_t kv_positions);

/// The report as a JSON object, keys as the fields above.
std::string to_json(const LoadReport& report);

/// Who was in which slot, and when: an array of {request, slot, begin_s, end_s}, for a
/// plot.
std::string timeline_json(const LoadRun& run);

/// What padding costs if B sequences of these lengths are computed as one (B, max) array:
/// 1 - sum(len) / (B max(len)). Of answers, it is the share of slots that a static batch
/// leaves idle; of prompts, the share of its prefill that is spent on nothing.
/// @return 0 for no lengths
/// @throws Error if one is negative
double padding_share(const std::vector<std::int64_t>& lengths);

}  // namespace lab
