#include "lab/batching/load.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lab/core/error.hpp"

namespace lab {
namespace {

bool completed(const RequestResult& r) {
  return r.end == RequestEnd::stop || r.end == RequestEnd::length;
}

/// vLLM's rules: inclusive limits, and a TPOT of 0 for a single token.
bool meets(const RequestMetrics& m, const Slo& slo) {
  return m.ttft_ms() <= 1e3 * slo.ttft_s && m.tpot_ms() <= 1e3 * slo.tpot_s &&
         m.latency_ms() <= 1e3 * slo.latency_s;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

void add_requests(LoadReport& report, const LoadRun& run) {
  std::vector<double> ttft, tpot, itl, latency, queue;
  double good = 0, output = 0;
  double first_s = std::numeric_limits<double>::infinity(), last_s = -first_s;
  for (const RequestResult& r : run.results) {
    report.n_aborted += r.end == RequestEnd::aborted;
    report.n_failed += r.end == RequestEnd::failed;
    report.n_preemptions += r.preemptions;
    report.recomputed_tokens += r.recomputed_tokens;
    report.cached_tokens += r.cached_tokens;
    output += static_cast<double>(r.ids.size());
    first_s = std::min(first_s, *r.request.arrival_s);
    last_s = std::max(last_s, r.stays.empty() ? first_s : r.stays.back().end_s);
    if (!completed(r)) continue;
    const RequestMetrics& m = r.metrics;
    ++report.n_completed;
    good += meets(m, r.request.slo);
    ttft.push_back(m.ttft_ms());
    if (m.output_tokens() > 1) tpot.push_back(m.tpot_ms());
    latency.push_back(m.latency_ms());
    queue.push_back(1e3 * r.queue_s);
    for (const double gap : m.itl_ms()) itl.push_back(gap);
  }
  report.duration_s = run.results.empty() ? 0 : last_s - first_s;
  report.ttft_ms = summarize(std::move(ttft));
  report.tpot_ms = summarize(std::move(tpot));
  report.itl_ms = summarize(std::move(itl));
  report.latency_ms = summarize(std::move(latency));
  report.queue_ms = summarize(std::move(queue));
  report.requests_per_s = ratio(static_cast<double>(report.n_completed), report.duration_s);
  report.output_tokens_per_s = ratio(output, report.duration_s);
  report.goodput_per_s = ratio(good, report.duration_s);
}

void add_steps(LoadReport& report, const std::vector<StepRecord>& steps,
               double max_num_seqs, double kv_positions) {
  double time = 0, running = 0, held = 0, stored = 0;
  for (const StepRecord& s : steps) {
    const double dt = s.end_s - s.begin_s;
    time += dt;
    running += dt * static_cast<double>(s.n_running);
    held += dt * static_cast<double>(s.kv_held);
    stored += dt * static_cast<double>(s.kv_stored);
    report.n_tokens += s.n_tokens;
    report.padding += s.padding;
  }
  report.n_steps = std::ssize(steps);
  report.slot_utilisation = ratio(running, time * max_num_seqs);
  report.kv_held = ratio(held, time * kv_positions);
  report.kv_stored = ratio(stored, held);
  report.padding_share = ratio(static_cast<double>(report.padding),
                               static_cast<double>(report.n_tokens + report.padding));
}

nlohmann::ordered_json json_of(const Summary& s) {
  return {{"n", s.n},     {"mean", s.mean}, {"p50", s.p50},
          {"p90", s.p90}, {"p99", s.p99},   {"max", s.max}};
}

}  // namespace

// [region run_load]
LoadRun run_load(Engine& engine, std::vector<Request> requests) {
  LoadRun run;
  Clock& clock = engine.clock();
  const double start_s = clock.now_s();
  std::size_t next = 0;
  const auto arrival = [&] { return start_s + requests[next].arrival_s.value_or(0); };
  while (next < requests.size() || engine.busy()) {
    for (; next < requests.size() && arrival() <= clock.now_s(); ++next) {
      requests[next].arrival_s = arrival();
      engine.submit(std::move(requests[next]));
    }
    if (const auto record = engine.step())
      run.steps.push_back(*record);
    else if (next < requests.size())
      clock.wait_until(arrival());
    for (RequestResult& result : engine.take_ended())
      run.results.push_back(std::move(result));
  }
  return run;
}
// [endregion]

double percentile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] +
         (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {std::ssize(values),       sum / static_cast<double>(values.size()),
          percentile(values, 0.5),  percentile(values, 0.9),
          percentile(values, 0.99), values.back()};
}

LoadReport make_report(const LoadRun& run, std::int64_t max_num_seqs,
                       std::int64_t kv_positions) {
  LoadReport report;
  add_requests(report, run);
  add_steps(report, run.steps, static_cast<double>(max_num_seqs),
            static_cast<double>(kv_positions));
  return report;
}

std::string to_json(const LoadReport& r) {
  const nlohmann::ordered_json json = {{"n_completed", r.n_completed},
                                       {"n_aborted", r.n_aborted},
                                       {"n_failed", r.n_failed},
                                       {"duration_s", r.duration_s},
                                       {"ttft_ms", json_of(r.ttft_ms)},
                                       {"tpot_ms", json_of(r.tpot_ms)},
                                       {"itl_ms", json_of(r.itl_ms)},
                                       {"latency_ms", json_of(r.latency_ms)},
                                       {"queue_ms", json_of(r.queue_ms)},
                                       {"requests_per_s", r.requests_per_s},
                                       {"output_tokens_per_s", r.output_tokens_per_s},
                                       {"goodput_per_s", r.goodput_per_s},
                                       {"n_steps", r.n_steps},
                                       {"n_tokens", r.n_tokens},
                                       {"padding", r.padding},
                                       {"n_preemptions", r.n_preemptions},
                                       {"recomputed_tokens", r.recomputed_tokens},
                                       {"cached_tokens", r.cached_tokens},
                                       {"slot_utilisation", r.slot_utilisation},
                                       {"kv_held", r.kv_held},
                                       {"kv_stored", r.kv_stored},
                                       {"padding_share", r.padding_share}};
  return json.dump(1);
}

std::string timeline_json(const LoadRun& run) {
  nlohmann::ordered_json timeline = nlohmann::ordered_json::array();
  for (const RequestResult& r : run.results)
    for (const Stay& stay : r.stays)
      timeline.push_back({{"request", r.request.id},
                          {"slot", stay.sequence},
                          {"begin_s", stay.begin_s},
                          {"end_s", stay.end_s}});
  return timeline.dump(1);
}

// [region padding_share]
double padding_share(const std::vector<std::int64_t>& lengths) {
  std::int64_t sum = 0, longest = 0;
  for (const std::int64_t n : lengths) {
    LAB_CHECK(n >= 0, "padding: a length is {}; lengths are >= 0", n);
    sum += n;
    longest = std::max(longest, n);
  }
  const auto slots = static_cast<double>(std::ssize(lengths) * longest);
  return slots > 0 ? 1 - static_cast<double>(sum) / slots : 0;
}
// [endregion]

}  // namespace lab
