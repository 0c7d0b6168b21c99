#include <cmath>
#include <limits>
#include <map>

#include "lab/core/error.hpp"
#include "lab/decode/metrics.hpp"
#include "lab/decode/sampler.hpp"
#include "lab/decode/stop.hpp"
#include "support/catch.hpp"

using namespace lab;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Probabilities 4, 2, 1, 1 eighths.
const std::vector<float> kEighths{std::log(4.0f), std::log(2.0f), 0, 0};

std::vector<Candidate> distribution(const SamplingParams& p,
                                    const std::vector<float>& logits,
                                    const std::vector<std::int32_t>& history = {}) {
  return Sampler(p).distribution(logits, history);
}

}  // namespace

TEST_CASE("greedy takes the largest logit, the lowest id on a tie") {
  Sampler greedy({});
  CHECK(greedy.sample(std::vector<float>{1, 3, 3, 2}, {}) == 1);
  CHECK(greedy.sample(std::vector<float>{-kInf, -5, -kInf}, {}) == 1);
  CHECK(greedy.sample(std::vector<float>{7}, {}) == 0);
}

TEST_CASE("temperature 1 gives the softmax, sorted") {
  const auto d = distribution({.temperature = 1}, kEighths);
  REQUIRE(d.size() == 4);
  CHECK(d[0].probability == Approx(0.5));
  CHECK(d[1].probability == Approx(0.25));
  CHECK(d[2].id == 2);  // the tie goes to the lower id
  CHECK(d[3].probability == Approx(0.125));
}

TEST_CASE("temperature sharpens and flattens") {
  CHECK(distribution({.temperature = 0.5}, kEighths)[0].probability == Approx(16.0 / 22));
  CHECK(distribution({.temperature = 1e6}, kEighths)[0].probability ==
        Approx(0.25).margin(1e-4));
}

TEST_CASE("top-k, top-p and min-p keep what they say, renormalised") {
  const auto k = distribution({.temperature = 1, .top_k = 2}, kEighths);
  REQUIRE(k.size() == 2);
  CHECK(k[0].probability == Approx(2.0 / 3));
  CHECK(distribution({.temperature = 1, .top_k = 99}, kEighths).size() == 4);
  CHECK(distribution({.temperature = 1, .top_p = 0.5}, kEighths).size() == 1);
  CHECK(distribution({.temperature = 1, .top_p = 0.51}, kEighths).size() == 2);
  CHECK(distribution({.temperature = 1, .top_p = 1e-9}, kEighths).size() == 1);
  CHECK(distribution({.temperature = 1, .min_p = 0.49}, kEighths).size() == 2);
  CHECK(distribution({.temperature = 1, .min_p = 0.51}, kEighths).size() == 1);
  CHECK(distribution({.temperature = 1, .min_p = 1}, kEighths).size() == 1);
}

TEST_CASE("top-p looks at what top-k has left") {
  // After top-k = 2 the best has 2/3, which is already more than 0.6.
  CHECK(distribution({.temperature = 1, .top_k = 2, .top_p = 0.6}, kEighths).size() == 1);
}

TEST_CASE("the repetition penalty divides positive and multiplies negative logits, once") {
  const SamplingParams p{.temperature = 1, .repetition_penalty = 2};
  const auto d = distribution(p, {2, -1, 0.5}, {0, 1, 1, 0, 77, -3});
  std::map<std::int32_t, double> probability;
  for (const Candidate& c : d) probability[c.id] = c.probability;
  CHECK(probability[0] / probability[2] == Approx(std::exp(1.0 - 0.5)));
  CHECK(probability[1] / probability[2] == Approx(std::exp(-2.0 - 0.5)));
}

TEST_CASE("draws follow the distribution and the seed") {
  const SamplingParams p{.temperature = 1, .seed = 7};
  Sampler a(p), b(p);
  std::vector<int> count(4);
  bool equal = true;
  for (int i = 0; i < 20000; ++i) {
    const auto id = a.sample(kEighths, {});
    equal = equal && id == b.sample(kEighths, {});
    ++count[static_cast<std::size_t>(id)];
  }
  CHECK(equal);
  // Chi-square with 3 degrees of freedom: 16.3 is passed once in a thousand seeds.
  double chi = 0;
  for (int i = 0; i < 4; ++i) {
    const double expected = 20000 * (i == 0 ? 0.5 : i == 1 ? 0.25 : 0.125);
    chi +=
        (count[std::size_t(i)] - expected) * (count[std::size_t(i)] - expected) / expected;
  }
  CHECK(chi < 16.3);
}

TEST_CASE("logits that no distribution can come from are refused") {
  Sampler s({});
  CHECK_THROWS_WITH(s.sample(std::vector<float>{1, kNaN}, {}),
                    ContainsSubstring("logit of token 1 is NaN"));
  CHECK_THROWS_WITH(s.sample(std::vector<float>{-kInf, -kInf}, {}),
                    ContainsSubstring("-inf"));
  CHECK_THROWS_WITH(s.sample(std::vector<float>{kInf, 0}, {}), ContainsSubstring("inf"));
  CHECK_THROWS_WITH(s.sample({}, {}), ContainsSubstring("no logits"));
}

TEST_CASE("sampling parameters out of range are named") {
  CHECK_THROWS_WITH(Sampler({.temperature = -1}), ContainsSubstring("temperature is -1"));
  CHECK_THROWS_WITH(Sampler({.temperature = kNaN}),
                    ContainsSubstring("temperature is nan"));
  CHECK_THROWS_WITH(Sampler({.top_k = -1}), ContainsSubstring("top-k is -1"));
  CHECK_THROWS_WITH(Sampler({.top_p = 0}), ContainsSubstring("top-p is 0"));
  CHECK_THROWS_WITH(Sampler({.top_p = 1.5}), ContainsSubstring("top-p is 1.5"));
  CHECK_THROWS_WITH(Sampler({.min_p = 2}), ContainsSubstring("min-p is 2"));
  CHECK_THROWS_WITH(Sampler({.repetition_penalty = 0}), ContainsSubstring("penalty is 0"));
}

TEST_CASE("a stop string is found across pushes and never shown") {
  StopMatcher m({"END", "\n\n"});
  CHECK(m.push("a line\n") == "a line");  // the newline may be the first of two
  CHECK(m.push("E") == "\n");             // it was not; but E may begin END
  CHECK(m.push("ND") == "");
  CHECK(m.stopped());
}

TEST_CASE("stop strings: held back text") {
  SECTION("split over pushes") {
    StopMatcher m({"STOP"});
    CHECK(m.push("abcS") == "abc");
    CHECK(m.push("TO") == "");
    CHECK(m.push("P and more") == "");
    CHECK(m.stopped());
    CHECK(m.push("ignored") == "");
    CHECK(m.finish() == "");
  }
  SECTION("a false start is released") {
    StopMatcher m({"STOP"});
    CHECK(m.push("ST") == "");
    CHECK(m.push("ART") == "START");
    CHECK_FALSE(m.stopped());
  }
  SECTION("what is held back at the end is released") {
    StopMatcher m({"STOP"});
    CHECK(m.push("xSTO") == "x");
    CHECK(m.finish() == "STO");
  }
  SECTION("the earliest of several wins") {
    StopMatcher m({"lo", "el"});
    CHECK(m.push("hello") == "h");
    CHECK(m.stopped());
  }
  SECTION("an overlapping repetition") {
    StopMatcher m({"aab"});
    CHECK(m.push("aaa") == "a");
    CHECK(m.push("b") == "");
    CHECK(m.stopped());
  }
  SECTION("none") {
    StopMatcher m({});
    CHECK(m.push("text") == "text");
  }
  CHECK_THROWS_WITH(StopMatcher({""}), ContainsSubstring("empty"));
}

TEST_CASE("metrics follow the definitions of serving benchmarks") {
  using std::chrono::milliseconds;
  RequestMetrics m(10);
  CHECK(m.ttft_ms() == 0);
  CHECK(m.tpot_ms() == 0);
  CHECK(m.itl_ms().empty());
  const auto t0 = m.arrival();
  m.token_at(t0 + milliseconds(100));
  CHECK(m.tpot_ms() == 0);  // one token: no pace yet
  CHECK(m.decode_tokens_per_s() == 0);
  m.token_at(t0 + milliseconds(110));
  m.token_at(t0 + milliseconds(140));
  CHECK(m.ttft_ms() == Approx(100));
  CHECK(m.latency_ms() == Approx(140));
  CHECK(m.tpot_ms() == Approx(20));  // (140 - 100) / 2
  REQUIRE(m.itl_ms().size() == 2);
  CHECK(m.itl_ms()[0] == Approx(10));
  CHECK(m.itl_ms()[1] == Approx(30));
  CHECK(m.prefill_tokens_per_s() == Approx(100));
  CHECK(m.decode_tokens_per_s() == Approx(50));
}
