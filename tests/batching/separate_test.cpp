// Separate steps (TGI) and static batches.
#include "lab/batching/load.hpp"
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

SchedulerConfig separate(double ratio, std::int64_t max_waiting_tokens) {
  SchedulerConfig c;
  c.interleave = Interleave::separate;
  c.admission = Admission::reserve;
  c.chunked_prefill = false;
  c.max_num_seqs = 8;
  c.max_num_batched_tokens = 16;
  c.waiting_served_ratio = ratio;
  c.max_waiting_tokens = max_waiting_tokens;
  return c;
}

/// Three requests run; then `n` more arrive. @return the steps from then on
Steps after_three(const SchedulerConfig& config, int n, std::int64_t answer = 8) {
  Bench b(config);
  for (int id = 1; id <= 3; ++id) b.engine.submit(make_request(id, 2, answer));
  CHECK(b.step() == "1x2* 2x2* 3x2*");
  CHECK(b.step() == "1x1* 2x1* 3x1*");
  for (int id = 4; id < 4 + n; ++id) b.engine.submit(make_request(id, 2, 1));
  Steps out = b.steps();
  for (const auto& [id, r] : b.results) CHECK(r.ids == solo(r.request));
  return out;
}

const std::string kAll = "1x1* 2x1* 3x1*";

}  // namespace

TEST_CASE("waiting_served_ratio: floor(running * ratio) must wait, and fit") {
  SECTION("floor(3 * 0.3) = 0: one is enough") {
    CHECK(after_three(separate(0.3, 100), 1)[0] == "4x2*");
  }
  SECTION("floor(3 * 0.67) = 2: one is not, two are") {
    CHECK(after_three(separate(0.67, 100), 1) ==
          Steps{kAll, kAll, kAll, kAll, kAll, kAll, "4x2*"});
    CHECK(after_three(separate(0.67, 100), 2)[0] == "4x2* 5x2*");
  }
  SECTION("floor(3 * 1.2) = 3") {
    CHECK(after_three(separate(1.2, 100), 2)[0] == kAll);
    CHECK(after_three(separate(1.2, 100), 3)[0] == "4x2* 5x2* 6x2*");
  }
  SECTION("enough wait, but too few of them fit the token budget") {
    SchedulerConfig c = separate(1, 100);
    c.max_num_batched_tokens = 8;
    Bench b(c);
    for (int id = 1; id <= 2; ++id) b.engine.submit(make_request(id, 2, 4));
    CHECK(b.step() == "1x2* 2x2*");
    for (int id = 3; id <= 4; ++id) b.engine.submit(make_request(id, 6, 1));
    // Two are wanted, two wait, but 6 + 6 > 8: both stay, and in their order.
    CHECK(b.steps() == Steps{"1x1* 2x1*", "1x1* 2x1*", "1x1* 2x1*", "3x6*", "4x6*"});
    CHECK(b.results[3].stays.size() == 1);
  }
}

TEST_CASE("max_waiting_tokens: one that has waited so many steps enters alone") {
  // The count is 1 after a prefill and grows with every decode: 2 when request 4 arrives.
  CHECK(after_three(separate(1.2, 2), 1)[0] == "4x2*");
  CHECK(after_three(separate(1.2, 3), 1) ==
        Steps{kAll, "4x2*", kAll, kAll, kAll, kAll, kAll});
  CHECK(after_three(separate(1.2, 5), 1) ==
        Steps{kAll, kAll, kAll, "4x2*", kAll, kAll, kAll});
  CHECK(after_three(separate(1.2, 0), 1)[0] == "4x2*");  // never holds anyone back
}

TEST_CASE("running requests wait for one prefill, then decode before the next") {
  SchedulerConfig c = separate(0, 100);
  c.max_num_batched_tokens = 8;
  Bench b(c);
  b.engine.submit(make_request(1, 2, 4));
  CHECK(b.step() == "1x2*");
  for (int id = 2; id <= 3; ++id) b.engine.submit(make_request(id, 8, 1));
  CHECK(b.steps() == Steps{"2x8*", "1x1*", "3x8*", "1x1*", "1x1*"});
}

TEST_CASE("the count of waiting steps begins anew when requests are taken in") {
  Bench b(separate(2, 3));
  b.engine.submit(make_request(1, 2, 12));
  CHECK(b.step() == "1x2*");
  b.engine.submit(make_request(2, 2, 1));
  CHECK(b.step() == "1x1*");  // count 1 -> 2
  CHECK(b.step() == "1x1*");  // 2 -> 3
  CHECK(b.step() == "2x2*");  // 3 >= 3; -> 1
  b.engine.submit(make_request(3, 2, 1));
  CHECK(b.step() == "1x1*");
  CHECK(b.step() == "1x1*");
  CHECK(b.step() == "3x2*");
}

TEST_CASE(
    "separate steps on demand: a preempted request computes its text in one prefill") {
  SchedulerConfig c = separate(0.3, 20);
  c.admission = Admission::on_demand;
  Bench b(c, std::make_unique<PooledKvSpace>(8));
  b.engine.submit(make_request(1, 3, 4));
  b.engine.submit(make_request(2, 3, 3));
  CHECK(b.steps() == Steps{"1x3* 2x3*", "1x1* 2x1*", "1x1*", "1x1*", "2x5*"});
  for (int id = 1; id <= 2; ++id) CHECK(b.results[id].ids == solo(b.results[id].request));
}

TEST_CASE("static batches end with their longest answer, and count what they waste") {
  SchedulerConfig c = separate(0.3, 20);
  c.interleave = Interleave::static_batches;
  c.max_num_seqs = 3;
  Bench b(c);
  b.engine.submit(make_request(1, 4, 1));
  b.engine.submit(make_request(2, 2, 5));
  b.engine.submit(make_request(3, 1, 2));
  b.engine.submit(make_request(4, 3, 2));  // waits for request 2, though 1 leaves at once
  CHECK(b.steps() ==
        Steps{"1x4* 2x2* 3x1*", "2x1* 3x1*", "2x1*", "2x1*", "2x1*", "4x3*", "4x1*"});
  std::vector<std::int64_t> padding;
  for (const StepRecord& r : b.records) padding.push_back(r.padding);
  // Prompts 3 * 4 - (4 + 2 + 1); answers: 3 slots for 4 decodes, less 4 + 1 tokens.
  CHECK(padding == std::vector<std::int64_t>{5, 1, 2, 2, 2, 0, 0});
  // The formula counts the first tokens, which the prefill draws, with the answers.
  CHECK(padding_share({1, 5, 2}) == Approx(1 - 8.0 / 15));
  CHECK((padding[1] + padding[2] + padding[3] + padding[4]) / 15.0 ==
        Approx(padding_share({1, 5, 2})));
  CHECK(padding_share({4, 2, 1}) == Approx(padding[0] / 12.0));
}

TEST_CASE("static batching is the limit of both knobs: enough never wait") {
  const auto schedule = [](SchedulerConfig c) {
    c.max_num_batched_tokens = 1000;
    c.max_num_seqs = 3;
    Bench b(c);
    Rng rng(4);
    for (int id = 0; id < 20; ++id)
      b.engine.submit(make_request(id, 1 + rng.below(9), 1 + rng.below(9)));
    return b.steps();
  };
  SchedulerConfig is_static = separate(0.3, 20);
  is_static.interleave = Interleave::static_batches;
  CHECK(schedule(separate(std::numeric_limits<double>::infinity(), 1000000)) ==
        schedule(is_static));
}

TEST_CASE("a static batch is as wide as its longest prompt, also in the token budget") {
  SchedulerConfig c = separate(0.3, 20);
  c.interleave = Interleave::static_batches;
  Bench b(c);
  b.engine.submit(make_request(1, 2, 1));
  b.engine.submit(make_request(2, 7, 1));  // 2 * 7 <= 16
  b.engine.submit(make_request(3, 1, 1));  // 3 * 7 > 16
  CHECK(b.steps() == Steps{"1x2* 2x7*", "3x1*"});
}

TEST_CASE("padding_share of nothing, of zeros, and of a negative length") {
  CHECK(padding_share({}) == 0);
  CHECK(padding_share({0, 0}) == 0);
  CHECK(padding_share({7}) == 0);
  CHECK(padding_share({4, 0}) == 0.5);
  CHECK_THROWS_WITH(padding_share({3, -1}), ContainsSubstring("a length is -1"));
}
