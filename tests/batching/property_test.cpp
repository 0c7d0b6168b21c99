// Random operations on random engines: what must hold after every one of them.
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

SchedulerConfig random_config(Rng& rng) {
  SchedulerConfig c;
  c.max_num_seqs = 1 + rng.below(6);
  c.max_num_batched_tokens = c.max_num_seqs + rng.below(24);
  c.interleave = static_cast<Interleave>(rng.below(3));
  c.admission = static_cast<Admission>(rng.below(2));
  c.chunked_prefill = c.interleave == Interleave::mixed && rng.below(3) > 0;
  if (c.chunked_prefill && rng.below(2)) c.prefill_chunk = 1 + rng.below(8);
  c.preempt_for_order = c.interleave == Interleave::mixed &&
                        c.admission == Admission::on_demand && rng.below(2);
  c.waiting_served_ratio = 2 * rng.uniform();
  c.max_waiting_tokens = rng.below(8);
  return c;
}

std::unique_ptr<KvSpace> random_space(Rng& rng, const SchedulerConfig& c) {
  if (rng.below(2))
    return std::make_unique<SlotKvSpace>(
        std::max<std::int64_t>(1, c.max_num_seqs - rng.below(2)), 20 + rng.below(20));
  return std::make_unique<PooledKvSpace>(18 + rng.below(30));
}

Policy random_policy(Rng& rng) {
  switch (rng.below(4)) {
    case 0:
      return by_priority(1 + double(rng.below(20)));
    case 1:
      return shortest_first(0.1 + rng.uniform());
    case 2:
      return earliest_deadline(20);
    default:
      return first_come_first_served();
  }
}

Request random_request(Rng& rng, std::int64_t id) {
  Request r = make_request(id, 1 + rng.below(14), 1 + rng.below(12));
  for (auto& token : r.prompt) token = static_cast<std::int32_t>(rng.below(16));
  r.ignore_end = rng.below(2);
  r.priority = rng.below(5) - 2;
  if (rng.below(2)) r.slo.ttft_s = 1 + double(rng.below(30));
  if (rng.below(2)) r.sampling = {.temperature = 1, .seed = rng.bits()};
  return r;
}

/// Held exactly by those that run, and by nobody twice.
void check_conservation(const Bench& b, std::int64_t last_id) {
  const Scheduler& s = b.engine.scheduler();
  for (std::int64_t id = 0; id <= last_id; ++id)
    if (const LiveRequest* r = s.find(id); r && r->phase == RequestPhase::waiting)
      REQUIRE((r->computed == 0 && r->sequence == -1));
  std::set<std::int64_t> sequences;
  for (const LiveRequest* r : s.running()) {
    REQUIRE(r->phase == RequestPhase::running);
    REQUIRE(r->sequence >= 0);
    REQUIRE(sequences.insert(r->sequence).second);
    REQUIRE(r->gap() >= 1);
    REQUIRE(r->computed >= 0);
    REQUIRE(r->n_generated() < r->request.max_tokens);
  }
  REQUIRE(s.n_running() <= s.config().max_num_seqs);
  REQUIRE(b.kv->held() <= b.kv->total());
  if (const auto* slots = dynamic_cast<const SlotKvSpace*>(b.kv.get()))
    REQUIRE(slots->held() == s.n_running() * slots->longest());
  REQUIRE((b.kv->held() == 0) == (s.n_running() == 0));
}

void check_step(const Bench& b, const StepRecord& r) {
  const SchedulerConfig& c = b.engine.scheduler().config();
  REQUIRE(r.n_tokens >= 1);
  REQUIRE(r.n_tokens <= c.max_num_batched_tokens);
  REQUIRE(r.n_running <= c.max_num_seqs);
  REQUIRE(r.kv_stored <= r.kv_held);
  REQUIRE(r.n_visited <= 4 * c.max_num_seqs + 2);  // whatever waits
  if (c.interleave != Interleave::mixed)
    REQUIRE((r.n_decodes == 0 || r.n_decodes == r.n_tokens));
  if (c.admission == Admission::reserve) REQUIRE(r.n_preempted == 0);
}

}  // namespace

TEST_CASE("12,000 random operations: nothing is lost, leaked, starved or said wrong") {
  std::int64_t operations = 0, preemptions = 0, aborted = 0, refused = 0, completed = 0;
  for (std::uint64_t seed = 0; operations < 12000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const SchedulerConfig c = random_config(rng);
    Bench b(c, random_space(rng, c), random_policy(rng), 32);
    std::map<std::int64_t, Request> sent;
    for (int i = 0; i < 150; ++i, ++operations) {
      const std::int64_t what = rng.below(10);
      if (what < 4) {
        const Request r = random_request(rng, i);
        try {
          b.engine.submit(r);
          sent[i] = r;
        } catch (const Error&) {
          ++refused;
          REQUIRE(b.engine.scheduler().find(i) == nullptr);
        }
      } else if (what == 4) {
        b.engine.abort(rng.below(i + 1));
      } else {
        b.step();
        if (!b.records.empty()) check_step(b, b.records.back());
      }
      check_conservation(b, i);
    }
    std::int64_t guard = 0;
    while (b.engine.busy()) {
      b.step();
      check_step(b, b.records.back());
      check_conservation(b, 150);
      REQUIRE(++guard < 5000);
    }
    b.step();  // collects what was aborted last
    REQUIRE(b.kv->held() == 0);
    REQUIRE(b.results.size() == sent.size());
    for (const auto& [id, r] : sent) {
      const RequestResult& result = b.results[id];
      const auto expected = solo(r, 32);
      preemptions += result.preemptions;
      if (result.end == RequestEnd::aborted) {
        ++aborted;
        REQUIRE(result.ids.size() <= expected.size());
        REQUIRE(std::equal(result.ids.begin(), result.ids.end(), expected.begin()));
      } else {
        ++completed;
        REQUIRE(result.ids == expected);
      }
    }
  }
  // The test has seen what it is about.
  CHECK(preemptions > 100);
  CHECK(aborted > 100);
  CHECK(refused > 50);
  CHECK(completed > 1500);
}

TEST_CASE("no starvation: whoever arrives later than the handicap allows stays behind") {
  std::int64_t n_overtaken = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    SchedulerConfig c = random_config(rng);
    const Policy policy = random_policy(rng);
    Bench b(c, random_space(rng, c), policy, 32);
    std::map<std::int64_t, Request> sent;
    for (int i = 0; i < 120; ++i) {  // more than it can serve
      Request r = random_request(rng, i);
      r.arrival_s = b.clock.now_s();
      try {
        b.engine.submit(r);
        sent[i] = r;
      } catch (const Error&) {
      }
      b.step();
    }
    b.steps();
    for (const auto& [early, a] : sent)
      for (const auto& [late, z] : sent) {
        if (late <= early) continue;
        const bool overtaken =
            b.results[late].stays.front().begin_s < b.results[early].stays.front().begin_s;
        n_overtaken += overtaken;
        const double bound = policy.handicap_s(a) - policy.handicap_s(z);
        if (overtaken) REQUIRE(*z.arrival_s - *a.arrival_s < bound + 1e-9);
      }
  }
  CHECK(n_overtaken > 1000);
}

TEST_CASE("100,000 requests leave nothing behind, and a step's work does not grow") {
  VirtualClock clock;
  SimulatedModel model(clock, {.step_s = 1e-3, .token_s = 1e-5});
  PooledKvSpace kv(160);
  SchedulerConfig c;
  c.max_num_seqs = 16;
  c.max_num_batched_tokens = 64;
  Engine engine(model, kv, clock, c, shortest_first());
  Rng rng(5);
  constexpr std::int64_t kRequests = 100000;
  std::int64_t next = 0, ended = 0, preempted = 0;
  std::int64_t early_work = 0, late_work = 0, early_steps = 0, late_steps = 0;
  std::size_t most_ended_at_once = 0;
  while (next < kRequests || engine.busy()) {
    for (; next < kRequests && engine.scheduler().n_waiting() < 40; ++next)
      engine.submit(random_request(rng, next));
    if (next % 97 == 0) engine.abort(next - 30);
    const auto step = engine.step();
    if (!step) continue;
    preempted += step->n_preempted;
    (ended < kRequests / 10 ? early_work : late_work) += step->n_visited;
    ++(ended < kRequests / 10 ? early_steps : late_steps);
    const auto results = engine.take_ended();
    most_ended_at_once = std::max(most_ended_at_once, results.size());
    ended += std::ssize(results);
    REQUIRE(engine.scheduler().n_waiting() <= 40 + c.max_num_seqs);
    REQUIRE(kv.held() <= kv.total());
  }
  CHECK(ended == kRequests);
  CHECK(kv.held() == 0);
  CHECK(engine.take_ended().empty());
  CHECK(most_ended_at_once <= 40);
  CHECK(early_steps > 1000);
  CHECK(preempted > 1000);
  const double early = double(early_work) / double(early_steps);
  const double late = double(late_work) / double(late_steps);
  CHECK(std::abs(late / early - 1) < 0.05);
}
