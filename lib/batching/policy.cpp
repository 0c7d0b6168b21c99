#include "lab/batching/policy.hpp"

#include <cmath>

#include "lab/core/error.hpp"

namespace lab {
namespace {

void check_seconds(const char* policy, double seconds) {
  LAB_CHECK(seconds > 0 && std::isfinite(seconds),
            "policy {}: a wait of {} s given; give a finite number above 0", policy,
            seconds);
}

}  // namespace

// [region policies]
Policy first_come_first_served() {
  return {"fcfs", [](const Request&) { return 0.0; }};
}

Policy by_priority(double step_s) {
  check_seconds("priority", step_s);
  return {"priority",
          [=](const Request& r) { return step_s * static_cast<double>(r.priority); }};
}

Policy shortest_first(double s_per_token) {
  check_seconds("shortest", s_per_token);
  return {"shortest", [=](const Request& r) {
            return s_per_token * (static_cast<double>(r.prompt.size()) +
                                  static_cast<double>(r.max_tokens));
          }};
}

Policy earliest_deadline(double without_s) {
  check_seconds("deadline", without_s);
  return {"deadline", [=](const Request& r) {
            return std::isfinite(r.slo.ttft_s) ? r.slo.ttft_s : without_s;
          }};
}
// [endregion]

Policy make_policy(const std::string& name) {
  if (name == "fcfs") return first_come_first_served();
  if (name == "priority") return by_priority();
  if (name == "shortest") return shortest_first();
  if (name == "deadline") return earliest_deadline();
  throw Error(fmt::format(
      "policy \"{}\" is unknown; choose fcfs, priority, shortest or deadline", name));
}

}  // namespace lab
