/// @file
/// A request that has not ended yet.
#pragma once

#include <tuple>

#include "lab/batching/request.hpp"

namespace lab {

/// There is no "prefill phase" and no "decode phase" in it. A request has a text, of which
/// the keys and values of the first `computed` tokens are stored; scheduling it means to
/// close that gap. A gap of a whole prompt is what is called prefill, a gap of one token,
/// the one just drawn, is decode; after a preemption the gap is everything again.
struct LiveRequest {
  /// @param r         with arrival_s set
  /// @param due       place in the order: arrival and handicap
  /// @param number    of its submission, which decides ties
  LiveRequest(Request r, double due, std::int64_t number, OnToken callback)
      : request(std::move(r)),
        due_s(due),
        submission(number),
        on_token(std::move(callback)),
        text(request.prompt),
        sampler(request.sampling),
        metrics(std::ssize(request.prompt)) {}

  Request request;
  double due_s;
  std::int64_t submission;
  OnToken on_token;

  RequestPhase phase = RequestPhase::waiting;
  std::vector<std::int32_t> text;  ///< prompt and answer
  std::int64_t computed = 0;
  std::int64_t sequence = -1;  ///< its number in the KV cache, while running
  Sampler sampler;  ///< its own, so that its draws do not depend on its neighbours

  RequestMetrics metrics;
  std::vector<Stay> stays;
  std::int64_t preemptions = 0, recomputed = 0;
  std::int64_t cached = 0;
  std::int64_t seen = 0;  ///< most tokens computed in any stay

  std::int64_t gap() const { return std::ssize(text) - computed; }
  std::int64_t n_generated() const { return std::ssize(text) - std::ssize(request.prompt); }
  bool is_decoding() const {
    return phase == RequestPhase::running && n_generated() > 0 && gap() == 1;
  }
  /// Positions it takes if it runs to its end. The last token is never fed back.
  std::int64_t positions_at_most() const {
    return std::ssize(request.prompt) + request.max_tokens - 1;
  }
};

/// The order in which requests are admitted and scheduled; victims are taken from its end.
struct GoesBefore {
  bool operator()(const LiveRequest* a, const LiveRequest* b) const {
    return std::tie(a->due_s, a->submission) < std::tie(b->due_s, b->submission);
  }
};

}  // namespace lab
