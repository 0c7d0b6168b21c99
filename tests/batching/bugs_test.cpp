// Bugs of other engines, as tests. The names are repository#number.
#include "lab/batching/load.hpp"
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

SchedulerConfig config(std::int64_t seqs, std::int64_t tokens) {
  SchedulerConfig c;
  c.max_num_seqs = seqs;
  c.max_num_batched_tokens = tokens;
  return c;
}

std::unique_ptr<KvSpace> pool(std::int64_t n) { return std::make_unique<PooledKvSpace>(n); }

Request with_priority(std::int64_t id, std::int64_t prompt, std::int64_t answer,
                      std::int64_t priority) {
  Request r = make_request(id, prompt, answer);
  r.priority = priority;
  return r;
}

void check_all_solo(const Bench& b) {
  for (const auto& [id, result] : b.results) {
    CAPTURE(id);
    CHECK(result.ids == solo(result.request));
  }
  CHECK(b.kv->held() == 0);
}

/// Remembers every text that was stored, and finds the longest common beginning.
class RememberingKvSpace final : public KvSpace {
 public:
  explicit RememberingKvSpace(std::int64_t n) : pool_(n) {}
  std::int64_t longest() const override { return pool_.longest(); }
  std::int64_t total() const override { return pool_.total(); }
  std::int64_t held() const override { return pool_.held(); }
  std::int64_t cached_prefix(std::span<const std::int32_t> text) const override {
    ++lookups;
    std::int64_t best = 0;
    for (const auto& known : texts_) {
      const auto end = std::mismatch(text.begin(), text.end(), known.begin(), known.end());
      best = std::max<std::int64_t>(best, end.first - text.begin());
    }
    return std::min<std::int64_t>(best, std::ssize(text) - 1);
  }
  std::optional<KvLease> admit(std::span<const std::int32_t> text,
                               std::int64_t n) override {
    auto lease = pool_.admit(text, n);
    if (lease) lease->cached = cached_prefix(text);
    return lease;
  }
  bool grow(std::int64_t s, std::int64_t n) override { return pool_.grow(s, n); }
  void stored(std::int64_t, std::span<const std::int32_t> text) override {
    texts_.emplace_back(text.begin(), text.end());
  }
  void release(std::int64_t s) override { pool_.release(s); }

  mutable int lookups = 0;

 private:
  PooledKvSpace pool_;
  std::vector<std::vector<std::int32_t>> texts_;
};

}  // namespace

TEST_CASE("nano-vllm PR#211 (2), LMCache#1969 (22): a resumed request is looked up again") {
  Bench b(config(4, 16), std::make_unique<RememberingKvSpace>(8));
  b.model.has_prefix_cache = true;
  b.engine.submit(make_request(1, 3, 4));
  b.engine.submit(make_request(2, 3, 3));
  // As without a cache, but the four tokens that request 2 had stored are not computed
  // again.
  CHECK(b.steps() == Steps{"1x3* 2x3*", "1x1* 2x1*", "1x1*", "1x1*", "2x1*"});
  CHECK(b.results[2].preemptions == 1);
  CHECK(b.results[2].cached_tokens == 4);
  CHECK(b.results[2].recomputed_tokens == 0);
  check_all_solo(b);
}

TEST_CASE("a prompt that is cached whole still computes its last token, and draws") {
  Bench b(config(4, 16), std::make_unique<RememberingKvSpace>(100));
  b.model.has_prefix_cache = true;
  Request again = make_request(1, 6, 2);
  again.id = 2;
  b.engine.submit(make_request(1, 6, 2));
  b.steps();
  b.engine.submit(again);
  CHECK(b.steps() == Steps{"2x1*", "2x1*"});
  CHECK(b.results[2].ids == b.results[1].ids);
}

TEST_CASE("a hit counts against the token budget only with what is left to compute") {
  SchedulerConfig c = config(4, 8);
  SECTION("mixed") {}
  SECTION("separate") {
    c.interleave = Interleave::separate;
    c.chunked_prefill = false;
  }
  Bench b(c, std::make_unique<RememberingKvSpace>(100));
  b.model.has_prefix_cache = true;
  b.engine.submit(make_request(1, 6, 1));
  b.steps();
  for (int id = 2; id <= 4; ++id) {
    Request r = make_request(1, 6, 1);
    r.id = id;
    b.engine.submit(r);
  }
  b.engine.submit(make_request(5, 5, 1));
  CHECK(b.steps() == Steps{"2x1* 3x1* 4x1* 5x5*"});  // 3 * 1 + 5 = 8
}

TEST_CASE("llama.cpp#19034 (13): a slot holds nothing of the request before") {
  Bench b(config(1, 16), std::make_unique<SlotKvSpace>(1, 20));
  for (int id = 1; id <= 3; ++id) {
    Request r = make_request(1, 5, 6);  // the same prompt each time
    r.id = id;
    b.engine.submit(r);
  }
  b.steps();
  CHECK(b.results[1].ids == b.results[2].ids);
  CHECK(b.results[1].ids == b.results[3].ids);
  check_all_solo(b);
}

TEST_CASE("sglang-jax PR#982 (17): freeing twice is an error") {
  SlotKvSpace slots(2, 4);
  CHECK_THROWS_WITH(slots.release(0), ContainsSubstring("not in use"));
  slots.release(slots.admit({}, 4)->sequence);
  CHECK_THROWS_WITH(slots.release(0), ContainsSubstring("release each sequence once"));
  CHECK_THROWS_AS(slots.release(2), Error);
  CHECK_THROWS_AS(slots.release(-1), Error);
  PooledKvSpace positions(4);
  positions.release(positions.admit({}, 4)->sequence);
  CHECK_THROWS_WITH(positions.release(0), ContainsSubstring("not in use"));
  CHECK(positions.held() == 0);
}

TEST_CASE("sglang PR#948 (18): larger than the cache is refused, not tried for ever") {
  for (const Admission admission : {Admission::reserve, Admission::on_demand}) {
    SchedulerConfig c = config(4, 16);
    c.admission = admission;
    Bench b(c, pool(10));
    CHECK_THROWS_WITH(b.engine.submit(make_request(1, 4, 8)),
                      ContainsSubstring("up to 11 positions but the KV cache holds 10"));
    b.engine.submit(make_request(2, 4, 7));  // exactly 10
    b.steps();
    check_all_solo(b);
  }
}

TEST_CASE("vllm#16832 (21): preempted answers are complete, and said once") {
  for (int prompt = 1; prompt <= 5; ++prompt) {
    Bench b(config(4, 16), pool(12));
    std::map<std::int64_t, std::vector<std::int32_t>> heard;
    for (int id = 1; id <= 4; ++id)
      b.engine.submit(make_request(id, prompt, 7), [&heard](const TokenEvent& e) {
        REQUIRE(e.index == std::ssize(heard[e.id]));
        heard[e.id].push_back(e.token);
      });
    b.steps();
    check_all_solo(b);
    std::int64_t preemptions = 0;
    for (const auto& [id, result] : b.results) {
      CHECK(heard[id] == result.ids);
      preemptions += result.preemptions;
    }
    CHECK(preemptions > 0);
  }
}

TEST_CASE("vllm#23347 (23), #49097 (24): no victim has tokens, and nobody is skipped") {
  // Request 1 was admitted first but is the last in the order; 2 and 3 decode before it.
  Bench b(config(3, 16), pool(12), by_priority());
  b.engine.submit(with_priority(1, 3, 6, 9));
  b.step();
  b.engine.submit(with_priority(2, 3, 6, 1));
  b.engine.submit(with_priority(3, 3, 6, 2));
  CHECK(b.step() == "1x1* 2x3* 3x3*");
  CHECK(b.kv->held() == 10);
  CHECK(b.step() == "2x1* 3x1*");  // 12 of 12; 1 finds nothing and goes, being the last
  CHECK(b.records.back().n_preempted == 1);
  CHECK(b.engine.scheduler().find(1)->phase == RequestPhase::waiting);
  CHECK(b.step() == "2x1* 3x1*");
  b.steps();
  check_all_solo(b);
  CHECK(b.results[2].preemptions == 0);
}

TEST_CASE("vllm#41951 (25): a preempted request keeps its place") {
  Bench b(config(2, 16), pool(8));
  b.engine.submit(make_request(1, 3, 4));
  b.engine.submit(make_request(2, 3, 3));
  b.step();
  b.step();
  b.engine.submit(make_request(3, 1, 1));  // would fit beside 1; 2 came first
  CHECK(b.step() == "1x1*");
  CHECK(b.results[2].preemptions == 0);  // it has not ended
  CHECK(b.steps() == Steps{"1x1*", "2x5* 3x1*"});
  check_all_solo(b);
}

TEST_CASE("vllm#40004, PR#45561 (26): the urgent do not wait behind a full batch") {
  SchedulerConfig c = config(2, 16);
  c.preempt_for_order = true;
  Bench b(c, pool(100), by_priority());
  b.engine.submit(with_priority(1, 2, 50, 5));
  b.engine.submit(with_priority(2, 2, 50, 5));
  b.step();
  b.engine.submit(with_priority(3, 2, 2, 0));
  b.engine.submit(with_priority(4, 2, 2, 5));  // no better than those that run: waits
  CHECK(b.step() == "1x1* 3x2*");
  CHECK(b.engine.scheduler().find(2)->phase == RequestPhase::waiting);
  b.steps();
  check_all_solo(b);
  CHECK(b.results[2].preemptions == 1);  // and no ping-pong among equals
  CHECK(b.results[1].preemptions == 0);
  CHECK(b.results[4].preemptions == 0);
}

TEST_CASE("vllm#9272, #9342 (27): priorities and preemption in every order of arrival") {
  for (int order = 0; order < 24; ++order)
    for (const bool for_order : {false, true}) {
      SchedulerConfig c = config(3, 6);
      c.preempt_for_order = for_order;
      Bench b(c, pool(14), by_priority());
      std::vector<int> ids{0, 1, 2, 3};
      for (int i = 0, n = order; i < 4; ++i) {
        const int pick = n % (4 - i);
        n /= 4 - i;
        const int id = ids[std::size_t(pick)];
        ids.erase(ids.begin() + pick);
        b.engine.submit(with_priority(id, 2 + id, 8, id % 3));
        b.step();
      }
      b.steps();
      check_all_solo(b);
      CHECK(b.results.size() == 4);
    }
}

TEST_CASE("vllm-metal#199 (29): a prompt that no step can take is refused at once") {
  SchedulerConfig c = config(4, 8);
  c.chunked_prefill = false;
  c.admission = Admission::reserve;
  Bench b(c);
  CHECK_THROWS_WITH(
      b.engine.submit(make_request(1, 9, 1)),
      ContainsSubstring("9 tokens must be computed in one step but max_num_batched_tokens "
                        "is 8"));
  CHECK_NOTHROW(b.engine.submit(make_request(1, 8, 5)));
  b.steps();
  c.admission = Admission::on_demand;  // the answer would be computed again in one piece
  Bench again(c);
  CHECK_THROWS_WITH(again.engine.submit(make_request(1, 8, 5)),
                    ContainsSubstring("prompt and answer of 12 tokens"));
  CHECK_NOTHROW(again.engine.submit(make_request(1, 4, 5)));
  c.chunked_prefill = true;  // and with chunks there is no such limit
  Bench chunked(c);
  chunked.engine.submit(make_request(1, 9, 5));
  chunked.steps();
  check_all_solo(chunked);
}

TEST_CASE("ROCm/ATOM PR#1835 (30): a long prompt does not stop those that decode") {
  SchedulerConfig c = config(4, 10);
  c.prefill_chunk = 6;
  Bench b(c);
  b.engine.submit(make_request(1, 2, 400));
  b.step();
  b.engine.submit(make_request(2, 1200, 1));
  b.engine.submit(make_request(3, 3, 5));
  for (int i = 0; i < 5; ++i) CHECK(b.step().find("1x1*") == 0);
  CHECK(b.results.contains(3));  // the short one behind it is through already
  CHECK(b.results[3].metrics.ttft_ms() <= 1001);
  b.steps();
  for (const double gap : b.results[1].metrics.itl_ms()) CHECK(gap == Approx(1000));
  check_all_solo(b);
}

TEST_CASE("text-generation-inference#2842 (31): two very long prompts get through") {
  const bool on_demand = GENERATE(false, true);
  SchedulerConfig c = config(4, 16);
  c.admission = on_demand ? Admission::on_demand : Admission::reserve;
  Bench b(c, pool(1000));
  b.engine.submit(make_request(1, 900, 20));
  b.engine.submit(make_request(2, 980, 20));
  b.engine.submit(make_request(3, 5, 5));
  b.steps();
  CHECK(b.results.size() == 3);
  check_all_solo(b);
}

TEST_CASE(
    "vllm#55427, #47971, #24704 (32): a prompt as long as the context gives a token") {
  for (const Interleave interleave :
       {Interleave::mixed, Interleave::separate, Interleave::static_batches}) {
    SchedulerConfig c = config(4, 16);
    c.interleave = interleave;
    c.chunked_prefill = interleave == Interleave::mixed;
    Bench b(c, pool(100), first_come_first_served(), 12);
    b.engine.submit(make_request(1, 12, 50));
    b.engine.submit(make_request(2, 11, 50));
    b.engine.submit(make_request(3, 1, 1000000000000000000));
    b.steps();
    CHECK(b.results[1].ids.size() == 1);
    CHECK(b.results[2].ids.size() == 2);
    CHECK(b.results[3].ids.size() == 12);
    for (int id = 1; id <= 3; ++id) CHECK(b.results[id].end == RequestEnd::length);
    check_all_solo(b);
  }
}

TEST_CASE("vllm PR#44794 (34): nobody is overtaken for longer than the handicap says") {
  // A stream of urgent requests fills the only slot; the patient one gets in all the same.
  for (const bool for_order : {false, true}) {
    SchedulerConfig c = config(1, 16);
    c.preempt_for_order = for_order;
    Bench b(c, pool(100), by_priority(4));
    b.engine.submit(with_priority(0, 2, 1, 3));  // due at 0 + 3 * 4
    std::int64_t id = 1;
    while (!b.results.contains(0)) {
      b.engine.submit(with_priority(id++, 2, 1, 0));  // one second each
      b.step();
      REQUIRE(id < 50);
    }
    CHECK(b.clock.now_s() == Approx(13));  // those of seconds 0 to 11 went before
    b.steps();
  }
}

TEST_CASE("llama.cpp#23652 (35): one request that cannot go on stops no other") {
  Bench b(config(4, 16));
  for (int id = 1; id <= 3; ++id) b.engine.submit(make_request(id, 3, 5));
  b.step();
  b.model.fail_request = 2;
  b.steps();
  CHECK(b.results[2].end == RequestEnd::failed);
  CHECK(b.results[2].error == "its logits are NaN");
  CHECK(b.results[2].ids.size() == 1);
  for (const int id : {1, 3}) CHECK(b.results[id].ids == solo(make_request(id, 3, 5)));
  CHECK(b.kv->held() == 0);
}

TEST_CASE("vllm#5578 (36): no new prompt is let in before those that were preempted") {
  Bench b(config(8, 16), pool(20));
  std::int64_t id = 0;
  for (; id < 4; ++id) b.engine.submit(make_request(id, 3, 8));
  while (b.engine.busy()) {
    std::int64_t first_waiting = id;
    for (std::int64_t i = 0; i < id; ++i) {
      const LiveRequest* r = b.engine.scheduler().find(i);
      if (r && r->phase == RequestPhase::waiting)
        first_waiting = std::min(first_waiting, i);
    }
    b.step();
    for (const LiveRequest* r : b.engine.scheduler().running())
      CHECK((r->request.id <= first_waiting || b.results.contains(first_waiting) ||
             b.engine.scheduler().find(first_waiting)->phase == RequestPhase::running));
    if (id < 12) b.engine.submit(make_request(id, 1, 3)), ++id;
  }
  check_all_solo(b);
  CHECK(b.results.size() == 12);
}

TEST_CASE("ROCm/ATOM PR#1562, LMCache#3688, vllm PR#35506 (59): aborts free at once") {
  for (int after = 0; after < 12; ++after) {
    Bench b(config(2, 4), pool(14));
    for (int id = 1; id <= 3; ++id) b.engine.submit(make_request(id, 5, 4));
    for (int i = 0; i < after && b.engine.busy(); ++i) b.step();
    for (int id = 1; id <= 3; ++id) b.engine.abort(id);
    CHECK_FALSE(b.engine.busy());
    CHECK(b.kv->held() == 0);
    CHECK_FALSE(b.engine.abort(1));
    b.engine.submit(make_request(4, 5, 4));  // the engine still works
    b.steps();
    CHECK(b.results[4].ids == solo(make_request(4, 5, 4)));
  }
}
