/// @file
/// Who goes first.
#pragma once

#include <functional>
#include <string>

#include "lab/batching/request.hpp"

namespace lab {

/// An order of requests: each stands in the queue as if it had arrived `handicap_s` later
/// than it did. Ties go to the one submitted first.
///
/// This is ageing, and it needs no updates. Say a request's urgency falls by one class each
/// `step` seconds that it waits: at time t it is priority - (t - arrival) / step. Of two
/// requests the more urgent one is the same at every t, namely that with the smaller
/// arrival + step * priority. So every order below is a fixed key, a queue is a sorted set,
/// and starvation is bounded: no request is overtaken by one that arrives more than its
/// handicap (less the newcomer's) after it.
struct Policy {
  std::string name;
  std::function<double(const Request&)> handicap_s;
};

/// In order of arrival.
Policy first_come_first_served();

/// Lower `priority` first; one class is worth a wait of `step_s`.
/// @throws Error unless step_s > 0
Policy by_priority(double step_s = 10);

/// Smaller requests first, by the tokens they may take, prompt + max_tokens; one token is
/// worth a wait of `s_per_token`.
/// @throws Error unless s_per_token > 0
Policy shortest_first(double s_per_token = 0.05);

/// Earliest deadline first (Liu and Layland 1973, section 7): the deadline is the arrival
/// and the TTFT objective, or `without_s` for a request that has none.
/// @throws Error unless without_s > 0
Policy earliest_deadline(double without_s = 60);

/// @param name  fcfs, priority, shortest or deadline, with the defaults above
/// @throws Error for another name
Policy make_policy(const std::string& name);

}  // namespace lab
