/// @file
/// What a user asks of the engine, and what comes back.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lab/decode/metrics.hpp"
#include "lab/decode/sampler.hpp"

namespace lab {

/// Service level objectives of one request. A request is good if it meets all of them; a
/// value equal to the limit meets it.
struct Slo {
  double ttft_s = std::numeric_limits<double>::infinity();
  double tpot_s = std::numeric_limits<double>::infinity();
  double latency_s = std::numeric_limits<double>::infinity();
};

/// One prompt and what is wanted for it. Times are seconds of the engine's clock.
struct Request {
  std::int64_t id = 0;  ///< chosen by the caller; no two unfinished requests share one
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 16;
  bool ignore_end = false;  ///< go on after an end token, as benchmarks do
  SamplingParams sampling;
  std::int64_t priority = 0;  ///< lower goes first, as in vLLM
  Slo slo;
  /// When it arrived; empty: when it is submitted. An engine that is in the middle of a
  /// step gets to see a request late, and that wait counts.
  std::optional<double> arrival_s = {};
};

/// Where a request is in its life: waiting -> running -> ended, and back from running to
/// waiting when it is preempted.
enum class RequestPhase { waiting, running, ended };

/// How it ended.
enum class RequestEnd {
  stop,     ///< an end token
  length,   ///< max_tokens, or the context is full
  aborted,  ///< abort() was called
  failed    ///< the model could not go on; RequestResult::error says why
};
/// "stop", "length", "aborted" or "failed"
const char* name(RequestEnd end);

/// One stay in the KV cache. A request that is never preempted has one.
struct Stay {
  std::int64_t sequence = 0;  ///< its number in the KV cache: the slot
  double begin_s = 0, end_s = 0;
};

/// One generated token.
struct TokenEvent {
  std::int64_t id = 0;     ///< the request's
  std::int64_t index = 0;  ///< in the answer, from 0
  std::int32_t token = 0;
  std::optional<RequestEnd> end = {};  ///< set on the last one: stop or length
};
/// Receives the tokens of a request as they come. It may submit and abort requests, its own
/// too. If it throws, its request fails and no other notices.
using OnToken = std::function<void(const TokenEvent&)>;

/// An ended request.
struct RequestResult {
  Request request;                ///< with arrival_s set
  std::vector<std::int32_t> ids;  ///< the answer, with the end token if there was one
  RequestEnd end = RequestEnd::length;
  std::string error;  ///< of a failed one
  RequestMetrics metrics{0};
  std::vector<Stay> stays;
  double queue_s = 0;  ///< arrival to its first stay; to its end, if it never had one
  std::int64_t preemptions = 0;
  std::int64_t recomputed_tokens = 0;  ///< computed again after preemptions
  std::int64_t cached_tokens = 0;      ///< found in a prefix cache and not computed
};

/// @throws Error if a field is out of range, whatever the engine
void validate(const Request& request);

}  // namespace lab
