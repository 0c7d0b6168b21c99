// Workloads have the distributions they claim, and reports the definitions they claim.
#include "lab/batching/load.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lab/batching/workload.hpp"
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

struct Moments {
  double mean, cv;  // cv: standard deviation / mean
};

Moments moments(const std::vector<double>& x) {
  const double n = double(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / n) / mean};
}

std::vector<double> gaps(const std::vector<Request>& requests) {
  std::vector<double> out;
  for (std::size_t i = 1; i < requests.size(); ++i)
    out.push_back(*requests[i].arrival_s - *requests[i - 1].arrival_s);
  return out;
}

/// Variance over mean of the number of arrivals in windows of `width_s`: 1 for Poisson.
double dispersion(const std::vector<Request>& requests, double width_s) {
  std::vector<double> counts(
      std::size_t(*requests.back().arrival_s / width_s));  // the last one is not whole
  for (const Request& r : requests)
    if (const auto i = std::size_t(*r.arrival_s / width_s); i < counts.size()) ++counts[i];
  const Moments m = moments(counts);
  return m.cv * m.cv * m.mean;
}

}  // namespace

TEST_CASE("gamma arrivals: the rate, and a spread of 1 / sqrt(burstiness)") {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    WorkloadConfig c;
    c.n_requests = 40000;
    c.rate = 5;
    c.burstiness = burstiness;
    c.prompt.most = c.output.most = 1;
    const Moments m = moments(gaps(make_workload(c)));
    CAPTURE(burstiness);
    CHECK(m.mean == Approx(0.2).epsilon(0.04));
    CHECK(m.cv == Approx(1 / std::sqrt(burstiness)).epsilon(0.04));
  }
}

TEST_CASE("on and off: the same mean rate, in clumps") {
  WorkloadConfig c;
  c.n_requests = 60000;
  c.rate = 5;
  c.prompt.most = c.output.most = 1;
  const double poisson = dispersion(make_workload(c), 2);
  c.arrivals = Arrivals::on_off;
  const auto bursty = make_workload(c);
  CHECK(*bursty.back().arrival_s == Approx(12000).epsilon(0.06));
  CHECK(poisson == Approx(1).epsilon(0.1));
  CHECK(dispersion(bursty, 2) > 5);
  for (const double gap : gaps(bursty)) REQUIRE(gap >= 0);
  c.arrivals = Arrivals::at_once;
  CHECK(*make_workload(c).back().arrival_s == 0);
}

TEST_CASE("lengths are log-normal: median and spread, within their limits") {
  WorkloadConfig c;
  c.n_requests = 20001;
  c.prompt = {.median = 200, .sigma = 0.5, .least = 1, .most = 100000};
  c.output = {.median = 30, .sigma = 1, .least = 10, .most = 50};
  std::vector<double> logs, lengths;
  std::int64_t shortest = 1000, longest = 0;
  for (const Request& r : make_workload(c)) {
    lengths.push_back(double(r.prompt.size()));
    logs.push_back(std::log(lengths.back()));
    shortest = std::min(shortest, r.max_tokens);
    longest = std::max(longest, r.max_tokens);
    for (const auto id : r.prompt) REQUIRE((id >= 0 && id < c.vocab_size));
  }
  std::sort(lengths.begin(), lengths.end());
  CHECK(lengths[10000] == Approx(200).epsilon(0.03));
  const Moments m = moments(logs);
  CHECK(m.cv * m.mean == Approx(0.5).epsilon(0.03));
  CHECK(shortest == 10);
  CHECK(longest == 50);
}

TEST_CASE("a workload is its seed's, and the rate changes nothing but the times") {
  WorkloadConfig c;
  c.n_requests = 50;
  c.seed = 3;
  const auto a = make_workload(c), b = make_workload(c);
  c.rate *= 2;
  const auto faster = make_workload(c);
  c.seed = 4;
  const auto other = make_workload(c);
  bool differs = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].prompt == b[i].prompt);
    CHECK(*a[i].arrival_s == *b[i].arrival_s);
    CHECK(a[i].prompt == faster[i].prompt);
    CHECK(a[i].max_tokens == faster[i].max_tokens);
    CHECK(*faster[i].arrival_s == Approx(*a[i].arrival_s / 2));
    differs = differs || a[i].prompt != other[i].prompt;
  }
  CHECK(differs);
  c.n_requests = 0;
  CHECK(make_workload(c).empty());
}

TEST_CASE("what a workload refuses") {
  const auto refused = [](auto change, const char* text) {
    WorkloadConfig c;
    change(c);
    CHECK_THROWS_WITH(make_workload(c), ContainsSubstring(text));
  };
  refused([](auto& c) { c.n_requests = -1; }, "-1 requests");
  refused([](auto& c) { c.rate = 0; }, "a rate of 0");
  refused([](auto& c) { c.rate = std::nan(""); }, "a rate of nan");
  refused([](auto& c) { c.burstiness = 0; }, "burstiness is 0");
  refused([](auto& c) { c.off_s = 0; }, "off for 0 s");
  refused([](auto& c) { c.vocab_size = 0; }, "a vocabulary of 0");
  refused([](auto& c) { c.prompt.median = 0; }, "median prompt length is 0");
  refused([](auto& c) { c.output.sigma = -1; }, "sigma of the output length is -1");
  refused([](auto& c) { c.output.least = 0; }, "output lengths from 0 to 1024");
  refused([](auto& c) { c.prompt.most = 0; }, "prompt lengths from 1 to 0");
}

TEST_CASE("percentiles interpolate between neighbours") {
  CHECK(percentile({5}, 0.99) == 5);
  CHECK(percentile({1, 2, 3, 4}, 0) == 1);
  CHECK(percentile({1, 2, 3, 4}, 0.5) == 2.5);
  CHECK(percentile({1, 2, 3, 4}, 0.9) == Approx(3.7));
  CHECK(percentile({1, 2, 3, 4}, 1) == 4);
  const Summary s = summarize({3, 1, 2});
  CHECK(s.n == 3);
  CHECK(s.mean == 2);
  CHECK(s.p50 == 2);
  CHECK(s.max == 3);
  CHECK(summarize({}).n == 0);
}

TEST_CASE("a report, computed by hand") {
  SchedulerConfig c;
  c.max_num_seqs = 2;
  c.max_num_batched_tokens = 8;
  Bench b(c, std::make_unique<PooledKvSpace>(20));
  std::vector<Request> requests{make_request(0, 4, 3), make_request(1, 6, 1),
                                make_request(2, 2, 2)};
  requests[0].arrival_s = 1;
  requests[1].arrival_s = 1.5;
  requests[2].arrival_s = 10;
  requests[0].slo = {.ttft_s = 1, .tpot_s = 1, .latency_s = 3};  // met, exactly
  requests[1].slo.ttft_s = 1;                                    // missed
  requests[2].slo.latency_s = 1.5;                               // missed
  const LoadRun run = run_load(b.engine, requests);
  // Steps of one second: at 1 (0: 4 tokens), 2 (0: 1, 1: 6), 3 (0: 1); at 10, 11 (2).
  REQUIRE(run.steps.size() == 5);
  REQUIRE(run.results.size() == 3);
  const LoadReport r = make_report(run, 2, 20);
  CHECK(r.n_completed == 3);
  CHECK(r.duration_s == Approx(11));
  CHECK(r.ttft_ms.mean == Approx((1000 + 1500 + 1000) / 3.0));
  CHECK(r.ttft_ms.max == Approx(1500));
  CHECK(r.tpot_ms.n == 2);  // a single token has none
  CHECK(r.tpot_ms.mean == Approx(1000));
  CHECK(r.itl_ms.n == 3);
  CHECK(r.latency_ms.p50 == Approx(2000));
  CHECK(r.queue_ms.max == Approx(500));
  CHECK(r.requests_per_s == Approx(3 / 11.0));
  CHECK(r.output_tokens_per_s == Approx(6 / 11.0));
  CHECK(r.goodput_per_s == Approx(1 / 11.0));
  CHECK(r.n_steps == 5);
  CHECK(r.n_tokens == 4 + 7 + 1 + 2 + 1);
  CHECK(r.slot_utilisation == Approx((1 + 2 + 1 + 1 + 1) / 10.0));
  // Given out: 4, 5 + 6, 6, 2, 3 positions; all of them filled when the step ends.
  CHECK(r.kv_held == Approx((4 + 11 + 6 + 2 + 3) / 100.0));
  CHECK(r.kv_stored == Approx(1));
  CHECK(r.padding == 0);

  const auto json = nlohmann::json::parse(to_json(r));
  CHECK(json["n_completed"] == 3);
  CHECK(json["ttft_ms"]["max"] == Approx(1500));
  CHECK(json["goodput_per_s"] == Approx(1 / 11.0));
  const auto timeline = nlohmann::json::parse(timeline_json(run));
  REQUIRE(timeline.size() == 3);
  CHECK(timeline[0]["request"] == 1);  // the first to end; it sat beside 0, in slot 1
  CHECK(timeline[0]["slot"] == 1);
  CHECK(timeline[0]["begin_s"] == Approx(2));
  CHECK(timeline[0]["end_s"] == Approx(3));
}

TEST_CASE("reserving whole answers holds memory that is not filled; a report of nothing") {
  SchedulerConfig c;
  c.admission = Admission::reserve;
  Bench b(c, std::make_unique<PooledKvSpace>(40));
  const LoadRun run = run_load(b.engine, {make_request(0, 4, 5)});
  const LoadReport r = make_report(run, 8, 40);
  CHECK(r.kv_held == Approx(8 / 40.0));
  CHECK(r.kv_stored == Approx((4 + 5 + 6 + 7 + 8) / 40.0));
  const LoadReport none = make_report(run_load(b.engine, {}), 8, 40);
  CHECK(none.duration_s == 0);
  CHECK(none.output_tokens_per_s == 0);
  CHECK(none.slot_utilisation == 0);
  CHECK_NOTHROW(nlohmann::json::parse(to_json(none)));
}

TEST_CASE("no two requests are in one slot at a time") {
  VirtualClock clock;
  SimulatedModel model(clock, {.step_s = 1e-2, .token_s = 1e-4, .kv_s = 1e-6});
  SlotKvSpace kv(4, 2100);
  SchedulerConfig c;
  c.max_num_seqs = 4;
  Engine engine(model, kv, clock, c);
  WorkloadConfig w;
  w.n_requests = 200;
  const LoadRun run = run_load(engine, make_workload(w));
  const auto timeline = nlohmann::json::parse(timeline_json(run));
  std::map<int, std::vector<std::pair<double, double>>> slots;
  for (const auto& stay : timeline)
    slots[stay["slot"]].push_back({stay["begin_s"], stay["end_s"]});
  CHECK(slots.size() == 4);
  for (auto& [slot, stays] : slots) {
    std::sort(stays.begin(), stays.end());
    for (std::size_t i = 1; i < stays.size(); ++i)
      REQUIRE(stays[i - 1].second <= stays[i].first);
  }
}

TEST_CASE("what a simulated step costs") {
  StepInput input;
  const std::vector<std::int32_t> ids{1, 2, 3};
  input.batch.add(0, 10, ids);
  input.batch.add(1, 0, {ids.data(), 1});
  input.padding = 2;
  const StepCost cost{.step_s = 1, .token_s = 0.01, .kv_s = 0.0001};
  CHECK(cost.seconds(input) == Approx(1 + 0.06 + 0.0014));
  VirtualClock clock;
  CHECK_THROWS_WITH(SimulatedModel(clock, cost, 0), ContainsSubstring("a context of 0"));
}
