#include <exercise.hpp>

#include "testing.hpp"

using testing::random_floats;
using testing::same;
using Floats = std::vector<float>;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Ids ids(const std::vector<exercise::Candidate>& candidates) {
  Ids out;
  for (const auto& c : candidates) out.push_back(c.id);
  return out;
}

Floats probabilities(const std::vector<exercise::Candidate>& candidates) {
  Floats out;
  for (const auto& c : candidates) out.push_back(c.probability);
  return out;
}

/// The softmax that task 3 gets: right for the scores that occur in these tests.
Floats supplied_softmax(std::span<const float> scores) {
  std::vector<double> e;
  for (const float x : scores) e.push_back(std::exp(double(x)));
  const double sum = std::accumulate(e.begin(), e.end(), 0.0);
  Floats out;
  for (const double x : e) out.push_back(float(x / sum));
  return out;
}

/// Attention as its definition says: one weight for every pair, 0 where the mask is.
Floats expected_attention(const Floats& q, const Floats& k, const Floats& v,
                          const exercise::AttentionShape& x) {
  const std::size_t group = x.n_heads / x.n_kv_heads;
  Floats out;
  for (std::size_t t = 0; t < x.n_tokens; ++t)
    for (std::size_t h = 0; h < x.n_heads; ++h) {
      std::vector<double> e(x.kv_len, 0.0);
      for (std::size_t s = 0; s < x.kv_len; ++s) {
        double dot = 0;
        for (std::size_t d = 0; d < x.head_dim; ++d)
          dot += double(q[(t * x.n_heads + h) * x.head_dim + d]) *
                 double(k[(s * x.n_kv_heads + h / group) * x.head_dim + d]);
        const bool masked = s + x.n_tokens > x.kv_len + t;
        e[s] = masked ? 0 : std::exp(dot / std::sqrt(double(x.head_dim)));
      }
      const double sum = std::accumulate(e.begin(), e.end(), 0.0);
      for (std::size_t d = 0; d < x.head_dim; ++d) {
        double o = 0;
        for (std::size_t s = 0; s < x.kv_len; ++s)
          o += e[s] / sum * double(v[(s * x.n_kv_heads + h / group) * x.head_dim + d]);
        out.push_back(float(o));
      }
    }
  return out;
}

Floats run_attention(const Floats& q, const Floats& k, const Floats& v,
                     const exercise::AttentionShape& shape) {
  return exercise::attention(q, k, v, shape, supplied_softmax);
}

}  // namespace

// ---------------------------------------------------------------- task 1

TEST_CASE("softmax: a row worked out by hand", "[task1][1pt]") {
  INFO(
      "hint: the exponentials of ln 4, ln 2, 0, 0 are 4, 2, 1, 1; divide each by their "
      "sum");
  const Floats x{std::log(4.0f), std::log(2.0f), 0, 0};
  CHECK(same(exercise::softmax(x), Floats{0.5f, 0.25f, 0.125f, 0.125f}, 1e-6));
}

TEST_CASE("softmax: large scores do not overflow", "[task1][1pt]") {
  INFO("hint: exp(1000) is infinite; adding a constant to every score changes no weight");
  CHECK(same(exercise::softmax(Floats{1000, 1000, -1000}), Floats{0.5f, 0.5f, 0}, 1e-6));
  CHECK(same(exercise::softmax(Floats{3e38f, 0}), Floats{1, 0}, 1e-6));
}

TEST_CASE("softmax: very negative scores do not all vanish", "[task1][1pt]") {
  INFO(
      "hint: the largest of -1000, -1000 is -1000: start the search for it with an "
      "element");
  CHECK(same(exercise::softmax(Floats{-1000, -1000}), Floats{0.5f, 0.5f}, 1e-6));
}

TEST_CASE("softmax: -inf gets 0, a single score gets 1", "[task1][1pt]") {
  INFO("hint: exp(-inf) is 0, which is just right, as long as the largest score is finite");
  CHECK(
      same(exercise::softmax(Floats{-kInf, 2, -kInf, 2}), Floats{0, 0.5f, 0, 0.5f}, 1e-6));
  CHECK(same(exercise::softmax(Floats{-7}), Floats{1}));
}

// ---------------------------------------------------------------- task 2

TEST_CASE("top-p: the smallest set that reaches p", "[task2][1pt]") {
  INFO("hint: add tokens, most likely first, until the sum is p or more, and then stop");
  const Floats x{0.5f, 0.25f, 0.125f, 0.125f};
  CHECK(same(ids(exercise::top_p(x, 0.7)), Ids{0, 1}));
  CHECK(same(ids(exercise::top_p(x, 0.75)), Ids{0, 1}));
  CHECK(same(ids(exercise::top_p(x, 0.76)), Ids{0, 1, 2}));
}

TEST_CASE("top-p: most likely first, ties by lower id", "[task2][1pt]") {
  INFO("hint: sort by probability, and where two are equal by id");
  const Floats x{0.125f, 0.25f, 0.125f, 0.25f, 0.25f};
  CHECK(same(ids(exercise::top_p(x, 0.8)), Ids{1, 3, 4, 0}));
  Ids first(48);
  std::iota(first.begin(), first.end(), 0);
  CHECK(same(ids(exercise::top_p(Floats(64, 1.0f / 64), 0.74)), first));
}

TEST_CASE("top-p: what is kept adds up to 1", "[task2][1pt]") {
  INFO("hint: divide what is kept by its own sum");
  const Floats x{0.125f, 0.5f, 0.25f, 0.125f};
  CHECK(same(probabilities(exercise::top_p(x, 0.7)), Floats{2 / 3.0f, 1 / 3.0f}, 1e-6));
}

TEST_CASE("top-p: a tiny p keeps one token, p = 1 keeps all", "[task2][1pt]") {
  INFO(
      "hint: the token that crosses p belongs to the set, and the list may end before p = "
      "1");
  const Floats x{0.1f, 0.2f, 0.3f, 0.4f};
  CHECK(same(ids(exercise::top_p(x, 1e-9)), Ids{3}));
  CHECK(same(ids(exercise::top_p(x, 1)), Ids{3, 2, 1, 0}));
  CHECK(same(ids(exercise::top_p(Floats(3, 0.333f), 1)), Ids{0, 1, 2}));
}

// ---------------------------------------------------------------- task 3

TEST_CASE("attention: an example worked out by hand", "[task3][1pt]") {
  INFO("hint: the scores are ln 3 and 0 once divided by sqrt(Dh), the weights 3/4 and 1/4");
  const Floats q{std::log(3.0f) * std::sqrt(2.0f), 0};
  const Floats k{1, 0, 0, 1}, v{4, 0, 0, 4};
  CHECK(same(run_attention(q, k, v, {1, 2, 1, 1, 2}), Floats{3, 1}, 1e-5));
}

TEST_CASE("attention: a token sees itself and the past, not the future", "[task3][1pt]") {
  INFO("hint: with T = S, query t sees the keys 0 to t, itself included");
  const Floats q = random_floats(3 * 4, 1), k = random_floats(3 * 4, 2);
  const Floats v{1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9};
  const Floats out = run_attention(q, k, v, {3, 3, 1, 1, 4});
  REQUIRE(out.size() == 12);
  CHECK(same(std::span(out).first(4), Floats{1, 1, 1, 1}, 1e-5));
  Floats changed_k = k, changed_v = v;
  changed_k[8] = 5, changed_v[8] = -50;
  const Floats again = run_attention(q, changed_k, changed_v, {3, 3, 1, 1, 4});
  REQUIRE(again.size() == 12);
  CHECK(same(std::span(again).first(8), std::span(out).first(8), 1e-5));
}

TEST_CASE("attention: the queries are the last ones of a longer text", "[task3][1pt]") {
  INFO("hint: query t stands at position S - T + t: with 1 query and 3 keys it sees all 3");
  const Floats v{1, 2, 6};
  CHECK(same(run_attention({1}, {0, 0, 0}, v, {1, 3, 1, 1, 1}), Floats{3}, 1e-5));
  CHECK(same(run_attention({1, 1}, {0, 0, 0}, v, {2, 3, 1, 1, 1}), Floats{1.5f, 3}, 1e-5));
}

TEST_CASE("attention: query head h reads key/value head h K / H", "[task3][1pt]") {
  INFO("hint: with 6 query heads on 2 key/value heads, heads 0, 1, 2 read the first");
  const Floats q(6, 1.0f);
  CHECK(same(run_attention(q, {1, 1}, {10, 20}, {1, 1, 6, 2, 1}),
             Floats{10, 10, 10, 20, 20, 20}, 1e-5));
}

TEST_CASE("attention: odd sizes, against the definition", "[task3][2pt]") {
  INFO("hint: compare each index with the shapes: q is (T, H, Dh), k and v are (S, K, Dh)");
  const exercise::AttentionShape shape{5, 11, 6, 3, 7};
  const Floats q = random_floats(5 * 6 * 7, 3);
  const Floats k = random_floats(11 * 3 * 7, 4), v = random_floats(11 * 3 * 7, 5);
  CHECK(same(run_attention(q, k, v, shape), expected_attention(q, k, v, shape), 1e-5));
}

// ---------------------------------------------------------------- task 4

TEST_CASE("generate: each token is asked for after all the text so far", "[task4][1pt]") {
  INFO("hint: append every token to the text before the next call");
  const auto count = [](std::span<const std::int32_t> text) {
    return static_cast<std::int32_t>(text.size()) * 10 + text.back() % 10;
  };
  CHECK(same(exercise::generate(count, Ids{7, 8}, 3, -1), Ids{28, 38, 48}));
}

TEST_CASE("generate: ends at the end token or the limit", "[task4][1pt]") {
  INFO("hint: the end token is not part of the answer, and no call is made past the limit");
  int calls = 0;
  const auto count_down = [&](std::span<const std::int32_t> text) {
    ++calls;
    return text.back() - 1;
  };
  CHECK(same(exercise::generate(count_down, Ids{4}, 100, 0), Ids{3, 2, 1}));
  CHECK(calls == 4);
  CHECK(same(exercise::generate(count_down, Ids{4}, 2, 0), Ids{3, 2}));
  CHECK(calls == 6);
  CHECK(exercise::generate(count_down, Ids{4}, 0, 0).empty());
  CHECK(calls == 6);
}

// ---------------------------------------------------------------- task 5

TEST_CASE("latency: four tokens by hand", "[task5][1pt]") {
  INFO(
      "hint: the clock starts at the arrival, and four tokens have three gaps between "
      "them");
  const std::vector<double> times{150, 160, 180, 210};
  const exercise::Latency l = exercise::latency(100, times);
  CHECK(same(std::vector{l.ttft_ms, l.tpot_ms}, std::vector{50.0, 20.0}, 1e-9));
}

TEST_CASE("latency: one token has no gap, no token is an error", "[task5][1pt]") {
  INFO(
      "hint: one token has 0 gaps: do not divide by 0; throw std::invalid_argument for "
      "none");
  const exercise::Latency l = exercise::latency(1, std::vector{4.0});
  CHECK(same(std::vector{l.ttft_ms, l.tpot_ms}, std::vector{3.0, 0.0}, 1e-9));
  CHECK_THROWS_AS(exercise::latency(1, std::vector<double>{}), std::invalid_argument);
}
