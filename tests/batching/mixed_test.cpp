// Mixed steps: one hand-computed schedule for each knob.
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

SchedulerConfig mixed(std::int64_t seqs, std::int64_t tokens) {
  SchedulerConfig c;
  c.max_num_seqs = seqs;
  c.max_num_batched_tokens = tokens;
  return c;
}

}  // namespace

TEST_CASE("a prompt draws its first token, and n tokens take n - 1 more steps") {
  Bench b(mixed(4, 16));
  b.engine.submit(make_request(1, 5, 3));
  CHECK(b.steps() == Steps{"1x5*", "1x1*", "1x1*"});
  CHECK(b.results[1].ids == solo(make_request(1, 5, 3)));
  CHECK(b.results[1].end == RequestEnd::length);
  CHECK(b.kv->held() == 0);
}

TEST_CASE("requests join and leave between any two steps") {
  Bench b(mixed(4, 16));
  b.engine.submit(make_request(1, 3, 4));
  CHECK(b.step() == "1x3*");
  b.engine.submit(make_request(2, 4, 2));
  CHECK(b.step() == "1x1* 2x4*");
  b.engine.submit(make_request(3, 2, 1));
  CHECK(b.step() == "1x1* 2x1* 3x2*");  // 2 and 3 leave
  CHECK(b.step() == "1x1*");
  CHECK_FALSE(b.engine.busy());
  for (int id = 1; id <= 3; ++id) CHECK(b.results[id].ids == solo(b.results[id].request));
}

TEST_CASE("max_num_seqs: the next in line enters when one leaves") {
  Bench b(mixed(2, 16));
  for (int id = 1; id <= 3; ++id) b.engine.submit(make_request(id, 2, id == 1 ? 2 : 3));
  CHECK(b.steps() == Steps{"1x2* 2x2*", "1x1* 2x1*", "2x1* 3x2*", "3x1*", "3x1*"});
}

TEST_CASE("max_num_batched_tokens: prompts are cut into what decodes leave") {
  Bench b(mixed(4, 4));
  b.engine.submit(make_request(1, 3, 3));
  b.engine.submit(make_request(2, 7, 2));
  // 1 leaves 1 token for 2 at first, then 3 of 4.
  CHECK(b.steps() == Steps{"1x3* 2x1", "1x1* 2x3", "1x1* 2x3*", "2x1*"});
  for (const StepRecord& r : b.records) CHECK(r.n_tokens <= 4);
}

TEST_CASE("prefill_chunk: a long prompt leaves room for a short one behind it") {
  SchedulerConfig c = mixed(4, 8);
  SECTION("without") {
    Bench b(c);
    b.engine.submit(make_request(1, 20, 1));
    b.engine.submit(make_request(2, 3, 1));
    CHECK(b.steps() == Steps{"1x8", "1x8", "1x4* 2x3*"});
  }
  SECTION("with") {
    c.prefill_chunk = 5;
    Bench b(c);
    b.engine.submit(make_request(1, 20, 1));
    b.engine.submit(make_request(2, 3, 1));
    CHECK(b.steps() == Steps{"1x5 2x3*", "1x5", "1x5", "1x5*"});
  }
}

TEST_CASE("chunked_prefill off: a prompt enters whole or not at all, and holds the line") {
  SchedulerConfig c = mixed(4, 8);
  c.chunked_prefill = false;
  c.admission = Admission::reserve;
  Bench b(c);
  b.engine.submit(make_request(1, 4, 3));
  b.engine.submit(make_request(2, 8, 1));  // fits only when 1 has gone
  b.engine.submit(make_request(3, 2, 1));  // would fit at once
  CHECK(b.steps() == Steps{"1x4*", "1x1*", "1x1*", "2x8*", "3x2*"});
}

TEST_CASE("Admission::reserve waits for the memory of whole answers") {
  SchedulerConfig c = mixed(4, 16);
  c.admission = Admission::reserve;
  Bench b(c, std::make_unique<PooledKvSpace>(10));
  b.engine.submit(make_request(1, 3, 4));  // 3 + 4 - 1 = 6 positions
  b.engine.submit(make_request(2, 3, 3));  // 5: do not fit beside 6
  b.engine.submit(make_request(3, 2, 1));  // 2: would fit, but 2 is before it
  CHECK(b.step() == "1x3*");
  CHECK(b.kv->held() == 6);
  CHECK(b.steps() == Steps{"1x1*", "1x1*", "1x1*", "2x3* 3x2*", "2x1*", "2x1*"});
  for (const StepRecord& r : b.records) CHECK(r.n_preempted == 0);
}

TEST_CASE("Admission::on_demand starts more, and preempts the last when memory runs out") {
  Bench b(mixed(4, 16), std::make_unique<PooledKvSpace>(8));
  b.engine.submit(make_request(1, 3, 4));
  b.engine.submit(make_request(2, 3, 3));
  CHECK(b.step() == "1x3* 2x3*");
  CHECK(b.kv->held() == 6);
  CHECK(b.step() == "1x1* 2x1*");  // 8 of 8
  CHECK(b.step() == "1x1*");       // 1 needs a ninth: 2 goes
  CHECK(b.records.back().n_preempted == 1);
  CHECK(b.engine.scheduler().find(2)->phase == RequestPhase::waiting);
  CHECK(b.kv->held() == 5);
  CHECK(b.step() == "1x1*");  // 2 has 5 tokens now; 3 positions are free, then 2
  CHECK(b.kv->held() == 0);
  CHECK(b.step() == "2x5*");  // prompt and answer so far, computed again in one piece
  CHECK_FALSE(b.engine.busy());
  for (int id = 1; id <= 2; ++id) CHECK(b.results[id].ids == solo(b.results[id].request));
  CHECK(b.results[1].preemptions == 0);
  CHECK(b.results[2].preemptions == 1);
  CHECK(b.results[2].recomputed_tokens == 4);  // the fifth token had not been fed yet
  CHECK(b.results[2].stays.size() == 2);
}

TEST_CASE("a request that is itself the last in the order preempts itself") {
  Bench b(mixed(2, 16), std::make_unique<PooledKvSpace>(8));
  b.engine.submit(make_request(1, 4, 3));
  b.engine.submit(make_request(2, 3, 5));
  CHECK(b.step() == "1x4* 2x3*");  // 7 of 8
  CHECK(b.step() == "1x1*");       // 8 of 8: none is left for 2
  CHECK(b.records.back().n_preempted == 1);
  CHECK(b.steps() == Steps{"1x1*", "2x4*", "2x1*", "2x1*", "2x1*"});
  CHECK(b.results[2].ids == solo(b.results[2].request));
}

TEST_CASE(
    "by_priority: lower goes first; preempt_for_order decides who may be pushed out") {
  const bool preempt = GENERATE(false, true);
  SchedulerConfig c = mixed(1, 16);
  c.preempt_for_order = preempt;
  Bench b(c, std::make_unique<PooledKvSpace>(100), by_priority());
  const auto submit = [&](int id, int priority) {
    Request r = make_request(id, 2, 3);
    r.priority = priority;
    b.engine.submit(r);
  };
  submit(1, 5);
  submit(2, 5);
  submit(3, 1);
  CHECK(b.step() == "3x2*");
  submit(4, 0);
  if (preempt)
    CHECK(b.steps() == Steps{"4x2*", "4x1*", "4x1*", "3x3*", "3x1*", "1x2*", "1x1*", "1x1*",
                             "2x2*", "2x1*", "2x1*"});
  else
    CHECK(b.steps() == Steps{"3x1*", "3x1*", "4x2*", "4x1*", "4x1*", "1x2*", "1x1*", "1x1*",
                             "2x2*", "2x1*", "2x1*"});
  for (int id = 1; id <= 4; ++id) CHECK(b.results[id].ids == solo(b.results[id].request));
}

TEST_CASE("an urgent prompt goes before the rest of a long one, without pushing it out") {
  Bench b(mixed(4, 6), std::make_unique<PooledKvSpace>(100), by_priority());
  Request slow = make_request(1, 12, 1), urgent = make_request(2, 4, 1);
  slow.priority = 1;
  b.engine.submit(slow);
  CHECK(b.step() == "1x6");
  b.engine.submit(urgent);
  CHECK(b.step() == "2x4* 1x2");
  CHECK(b.step() == "1x4*");
}

TEST_CASE("the order goes by arrival, not by when the engine got to see a request") {
  Bench b(mixed(1, 16));
  b.clock.wait_until(10);
  Request late = make_request(1, 2, 1), early = make_request(2, 2, 1);
  late.arrival_s = 9;
  early.arrival_s = 7;
  b.engine.submit(late);
  b.engine.submit(early);
  CHECK(b.steps() == Steps{"2x2*", "1x2*"});
}

TEST_CASE("a step that has preempted lets nobody in, even if there is room now") {
  Bench b(mixed(4, 16), std::make_unique<PooledKvSpace>(8), by_priority());
  Request one = make_request(1, 3, 6), two = make_request(2, 3, 6),
          urgent = make_request(3, 2, 1);
  one.priority = 1;
  two.priority = 2;
  b.engine.submit(one);
  b.engine.submit(two);
  CHECK(b.step() == "1x3* 2x3*");
  CHECK(b.step() == "1x1* 2x1*");  // 8 of 8
  b.engine.submit(urgent);
  CHECK(b.step() == "1x1*");  // 2 has gone; 3 positions are free
  CHECK(b.step() == "1x1* 3x2*");
  b.steps();
  for (int id = 1; id <= 3; ++id) CHECK(b.results[id].ids == solo(b.results[id].request));
}

TEST_CASE("preempt_for_order pushes out nobody who comes before") {
  SchedulerConfig c = mixed(4, 16);
  c.preempt_for_order = true;
  Bench b(c, std::make_unique<PooledKvSpace>(12), by_priority());
  const auto submit = [&](int id, int prompt, int priority) {
    Request r = make_request(id, prompt, 3);
    r.priority = priority;
    b.engine.submit(r);
  };
  submit(1, 6, 0);
  submit(2, 2, 5);
  CHECK(b.step() == "1x6* 2x2*");
  submit(3, 7, 3);  // needs 7 positions; without 2 there are 6
  CHECK(b.step() == "1x1*");
  CHECK(b.steps() == Steps{"1x1*", "3x7* 2x3*", "3x1* 2x1*", "3x1*"});
  CHECK(b.results[1].preemptions == 0);
  CHECK(b.results[2].preemptions == 1);
}

TEST_CASE("shortest_first and earliest_deadline order the queue") {
  SECTION("shortest") {
    Bench b(mixed(1, 16), std::make_unique<PooledKvSpace>(100), shortest_first());
    b.engine.submit(make_request(1, 9, 1));
    b.engine.submit(make_request(2, 2, 1));
    b.engine.submit(make_request(3, 2, 3));
    CHECK(b.steps() == Steps{"2x2*", "3x2*", "3x1*", "3x1*", "1x9*"});
  }
  SECTION("deadline") {
    Bench b(mixed(1, 16), std::make_unique<PooledKvSpace>(100), earliest_deadline(30));
    Request none = make_request(1, 2, 1), late = make_request(2, 2, 1),
            soon = make_request(3, 2, 1);
    late.slo.ttft_s = 40;
    soon.slo.ttft_s = 5;
    b.engine.submit(late);
    b.engine.submit(none);
    b.engine.submit(soon);
    CHECK(b.steps() == Steps{"3x2*", "1x2*", "2x2*"});
  }
}

TEST_CASE("what the configuration refuses") {
  const auto refused = [](auto change, const char* text) {
    SchedulerConfig c;
    change(c);
    CHECK_THROWS_WITH(c.validate(), ContainsSubstring(text));
  };
  refused([](auto& c) { c.max_num_seqs = 0; }, "max_num_seqs is 0");
  refused([](auto& c) { c.max_num_batched_tokens = 7; },
          "max_num_batched_tokens is 7 but max_num_seqs is 8");
  refused([](auto& c) { c.prefill_chunk = -1; }, "prefill_chunk is -1");
  refused([](auto& c) { c.waiting_served_ratio = std::nan(""); }, "waiting_served_ratio");
  refused([](auto& c) { c.waiting_served_ratio = -0.1; }, "waiting_served_ratio is -0.1");
  refused([](auto& c) { c.max_waiting_tokens = -1; }, "max_waiting_tokens is -1");
  refused([](auto& c) { c.interleave = Interleave::separate; }, "chunked_prefill is on");
  refused(
      [](auto& c) {
        c.chunked_prefill = false;
        c.prefill_chunk = 8;
      },
      "chunked_prefill is off");
  refused(
      [](auto& c) {
        c.preempt_for_order = true;
        c.admission = Admission::reserve;
      },
      "promises never to interrupt");
  refused(
      [](auto& c) {
        c.preempt_for_order = true;
        c.chunked_prefill = false;
        c.interleave = Interleave::separate;
      },
      "preempt_for_order is on but prompts have steps of their own");
  CHECK_NOTHROW(SchedulerConfig().validate());
}
