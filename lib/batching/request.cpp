#include "lab/batching/request.hpp"

#include <cmath>

#include "lab/core/error.hpp"

namespace lab {

const char* name(RequestEnd end) {
  switch (end) {
    case RequestEnd::stop:
      return "stop";
    case RequestEnd::length:
      return "length";
    case RequestEnd::aborted:
      return "aborted";
    case RequestEnd::failed:
      return "failed";
  }
  return "";
}

void validate(const Request& request) {
  LAB_CHECK(!request.prompt.empty(),
            "request {}: the prompt is empty; give at least one token", request.id);
  LAB_CHECK(request.max_tokens >= 1, "request {}: max_tokens is {}; give a number >= 1",
            request.id, request.max_tokens);
  LAB_CHECK(!request.arrival_s || std::isfinite(*request.arrival_s),
            "request {}: the arrival time is {} s; give a finite number", request.id,
            *request.arrival_s);
  const auto limit = [&](const char* what, double seconds) {
    LAB_CHECK(seconds > 0, "request {}: the {} objective is {} s; give a number above 0",
              request.id, what, seconds);
  };
  limit("TTFT", request.slo.ttft_s);
  limit("TPOT", request.slo.tpot_s);
  limit("latency", request.slo.latency_s);
  request.sampling.validate();
}

}  // namespace lab
