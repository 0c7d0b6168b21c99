// The life of a request: tokens as they come, aborts at any time, failures of one and of
// all.
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

SchedulerConfig small() {
  SchedulerConfig c;
  c.max_num_seqs = 3;
  c.max_num_batched_tokens = 8;
  return c;
}

}  // namespace

TEST_CASE("tokens are streamed one by one, and the last says why it is the last") {
  Bench b(small());
  std::vector<TokenEvent> events;
  b.engine.submit(make_request(7, 3, 4), [&](const TokenEvent& e) { events.push_back(e); });
  b.steps();
  const auto expected = solo(make_request(7, 3, 4));
  REQUIRE(events.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(events[i].id == 7);
    CHECK(events[i].index == std::int64_t(i));
    CHECK(events[i].token == expected[i]);
    CHECK(events[i].end.has_value() == (i == 3));
  }
  CHECK(events[3].end == RequestEnd::length);
}

TEST_CASE("an end token ends a request, unless it ignores it") {
  int ended_early = 0;
  for (int id = 0; id < 20; ++id) {
    Bench b(small());
    Request r = make_request(id, 3, 40);
    r.ignore_end = false;
    b.engine.submit(r);
    b.steps();
    const RequestResult& result = b.results[id];
    CHECK(result.ids == solo(r));
    const bool stop = result.ids.back() == StrictModel::kEnd;
    CHECK(result.end == (stop ? RequestEnd::stop : RequestEnd::length));
    ended_early += stop;
    r.ignore_end = true;
    b.engine.submit(r);
    b.steps();
    CHECK(b.results[id].ids.size() == 40);
  }
  CHECK(ended_early > 5);
}

TEST_CASE("every request draws from its own seed, whoever is beside it") {
  Bench b(small());
  std::vector<Request> requests;
  for (int id = 0; id < 9; ++id) {
    Request r = make_request(id, 1 + id % 4, 12);
    r.sampling = {.temperature = 1.5, .repetition_penalty = 1.3, .seed = std::uint64_t(id)};
    requests.push_back(r);
    b.engine.submit(r);
  }
  b.steps();
  for (const Request& r : requests) CHECK(b.results[r.id].ids == solo(r));
  Request other = requests[0];
  other.sampling.seed = 99;
  CHECK(solo(other) != solo(requests[0]));
}

TEST_CASE("metrics count from the arrival, in the engine's time") {
  Bench b(small());
  b.clock.wait_until(10);
  Request r = make_request(1, 12, 3);  // 8 + 4 tokens: the first token comes with step 2
  r.arrival_s = 7;
  b.engine.submit(r);
  b.steps();
  const RequestResult& result = b.results[1];
  CHECK(result.metrics.ttft_ms() == Approx(5000));
  CHECK(result.metrics.tpot_ms() == Approx(1000));
  CHECK(result.metrics.latency_ms() == Approx(7000));
  CHECK(result.queue_s == Approx(3));
  REQUIRE(result.stays.size() == 1);
  CHECK(result.stays[0].begin_s == Approx(10));
  CHECK(result.stays[0].end_s == Approx(14));
}

TEST_CASE("abort: waiting, half way through the prompt, decoding; unknown ids do nothing") {
  Bench b(small());
  for (int id = 1; id <= 5; ++id) b.engine.submit(make_request(id, 6, 9));
  CHECK(b.step() == "1x6* 2x2");
  CHECK(b.engine.abort(4));  // waiting
  CHECK(b.engine.abort(2));  // in its prompt
  CHECK(b.step() == "1x1* 3x6* 5x1");
  CHECK(b.engine.abort(1));  // decoding
  CHECK_FALSE(b.engine.abort(1));
  CHECK_FALSE(b.engine.abort(77));
  b.step();
  for (const int id : {1, 2, 4}) CHECK(b.results[id].end == RequestEnd::aborted);
  CHECK(b.results[1].ids.size() == 2);
  CHECK(b.results[2].ids.empty());
  CHECK(b.results[4].stays.empty());
  for (const int id : {3, 5}) CHECK(b.engine.abort(id));
  CHECK_FALSE(b.engine.busy());
  CHECK(b.kv->held() == 0);
  CHECK_FALSE(b.engine.step().has_value());
}

TEST_CASE("a callback may abort its own request, another of the same step, and submit") {
  Bench b(small());
  int tokens_of_2 = 0;
  b.engine.submit(make_request(1, 2, 5), [&](const TokenEvent& e) {
    if (e.index == 0) b.engine.submit(make_request(9, 1, 1));
    if (e.index == 1) {
      CHECK(b.engine.abort(2));
      // Its id is free again; the new request must not get the old one's token.
      b.engine.submit(make_request(2, 4, 2), [&](const TokenEvent&) { ++tokens_of_2; });
      CHECK(b.engine.abort(1));
    }
  });
  b.engine.submit(make_request(2, 2, 5));
  CHECK(b.step() == "1x2* 2x2*");
  CHECK(b.step() == "1x1* 2x1* 9x1*");
  CHECK(b.results[2].end == RequestEnd::aborted);
  CHECK(b.results[2].ids.size() == 1);
  CHECK(b.results[1].ids.size() == 2);
  CHECK(b.steps() == Steps{"2x4*", "2x1*"});
  CHECK(tokens_of_2 == 2);
  CHECK(b.results[2].ids == solo(make_request(2, 4, 2)));
  CHECK(b.kv->held() == 0);
}

TEST_CASE("a callback that throws fails its own request only") {
  Bench b(small());
  b.engine.submit(make_request(1, 2, 5), [](const TokenEvent& e) {
    if (e.index == 1) throw std::runtime_error("the client has gone");
  });
  b.engine.submit(make_request(2, 2, 5));
  b.steps();
  CHECK(b.results[1].end == RequestEnd::failed);
  CHECK(b.results[1].error == "the client has gone");
  CHECK(b.results[2].ids == solo(make_request(2, 2, 5)));
  CHECK(b.kv->held() == 0);
}

TEST_CASE("a step that fails as a whole fails its requests; those that wait go on") {
  Bench b(small());
  for (int id = 1; id <= 4; ++id) b.engine.submit(make_request(id, 5, 3));
  b.model.fail_next = true;
  CHECK(b.step() == "1x5* 2x3");
  for (const int id : {1, 2}) {
    CHECK(b.results[id].end == RequestEnd::failed);
    CHECK(b.results[id].error == "the device is lost");
  }
  b.steps();
  for (const int id : {3, 4}) CHECK(b.results[id].ids == solo(make_request(id, 5, 3)));
  CHECK(b.kv->held() == 0);
}

TEST_CASE("what submit refuses, and that a refusal leaves nothing behind") {
  Bench b(small(), std::make_unique<PooledKvSpace>(20), first_come_first_served(), 24);
  const auto refused = [&](Request r, const char* text) {
    CHECK_THROWS_WITH(b.engine.submit(std::move(r)), ContainsSubstring(text));
    CHECK_FALSE(b.engine.busy());
  };
  refused(make_request(1, 0, 3), "request 1: the prompt is empty");
  refused(make_request(1, 3, 0), "max_tokens is 0");
  refused(make_request(1, 25, 1),
          "the prompt has 25 tokens but the model's context holds 24");
  refused(make_request(1, 21, 1), "take up to 21 positions but the KV cache holds 20");
  refused(make_request(1, 10, 12), "take up to 21 positions");
  Request r = make_request(1, 3, 3);
  r.sampling.temperature = -1;
  refused(r, "temperature is -1");
  r = make_request(1, 3, 3);
  r.slo.tpot_s = 0;
  refused(r, "TPOT objective is 0 s");
  r.slo.tpot_s = std::nan("");
  refused(r, "TPOT objective is nan s");
  r = make_request(1, 3, 3);
  r.arrival_s = std::nan("");
  refused(r, "arrival time is nan s");
  r.arrival_s = 5;
  refused(r, "arrives at 5 s but it is 0 s now");
  CHECK_NOTHROW(b.engine.submit(make_request(1, 10, 11)));
  CHECK_THROWS_WITH(b.engine.submit(make_request(1, 2, 2)),
                    ContainsSubstring("an unfinished request has this id"));
  b.steps();
  CHECK_NOTHROW(b.engine.submit(make_request(1, 2, 2)));
}

TEST_CASE("an order that gives no place is refused") {
  Bench b(small(), std::make_unique<PooledKvSpace>(20),
          Policy{"broken", [](const Request&) { return std::nan(""); }});
  CHECK_THROWS_WITH(b.engine.submit(make_request(1, 2, 2)),
                    ContainsSubstring("policy broken gives it no place"));
}

TEST_CASE("a KV space that breaks its promise is an error, not an endless loop") {
  struct Broken final : KvSpace {
    std::int64_t longest() const override { return 100; }
    std::int64_t total() const override { return 100; }
    std::int64_t held() const override { return 0; }
    std::optional<KvLease> admit(std::span<const std::int32_t>, std::int64_t) override {
      return {};
    }
    bool grow(std::int64_t, std::int64_t) override { return false; }
    void release(std::int64_t) override {}
  };
  Bench b(small(), std::make_unique<Broken>());
  b.engine.submit(make_request(1, 2, 2));
  CHECK_THROWS_WITH(b.engine.step(), ContainsSubstring("none can be scheduled"));
}
