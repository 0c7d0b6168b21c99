#include "lab/kernels/sample.hpp"
#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

using Function = void (*)(HostView<std::int32_t, 1>, HostView<const float, 2>,
                          HostView<const float, 1>);
constexpr Function kBoth[] = {cpu::reference::sample, cpu::sample};

std::vector<std::int32_t> drawn(Function f, const std::vector<float>& p,
                                const std::vector<float>& u) {
  const std::int64_t n_tokens = std::int64_t(u.size());
  Guarded<std::int32_t> out(n_tokens);
  f(out.view({n_tokens}), view_of(p, {n_tokens, std::int64_t(p.size()) / n_tokens}),
    view_of(u, {n_tokens}));
  REQUIRE(out.intact());
  return {out.data(), out.data() + n_tokens};
}

/// Probabilities that a softmax could give, a fifth of them 0.
std::vector<float> random_probabilities(Rng& rng, std::int64_t n) {
  std::vector<float> p(static_cast<std::size_t>(n));
  double sum = 0;
  for (float& v : p) sum += v = rng.below(5) ? float(std::exp(3 * rng.normal())) : 0;
  if (sum == 0) sum = p[0] = 1;
  for (float& v : p) v = float(v / sum);
  return p;
}

}  // namespace

TEST_CASE("a probability in units of 2^-48 is rounded down, exactly") {
  Rng rng(1);
  for (const float p : {0.0f, -0.0f, 1.0f, 0.5f, 0x1p-48f, 0x1.8p-48f, 0x1.fffffep-49f,
                        0x1p-126f, 0x1p-149f, 0x1.fffffep-1f, 1 / 3.0f})
    CHECK(probability_units(p) == std::uint64_t(double(p) * 0x1p48));
  for (int i = 0; i < 10000; ++i) {
    const float p = float(std::ldexp(rng.uniform(), -int(rng.below(60))));
    if (probability_units(p) != std::uint64_t(double(p) * 0x1p48)) FAIL(p);
  }
  CHECK(is_probability(1));
  CHECK(is_probability(-0.0f));
  for (const float p : {-0x1p-149f, 0x1.000002p0f, INFINITY, -INFINITY, NAN})
    CHECK_FALSE(is_probability(p));
}

TEST_CASE("sample gives the index in whose interval of the cumulated sum u lies") {
  for (const std::int64_t n : {1, 2, 31, 33, 127, 1000, 49152})
    for (const Function f : kBoth) {
      INFO("n=" << n);
      Rng rng{std::uint64_t(n)};
      const auto p = random_probabilities(rng, n);
      for (int i = 0; i < 20; ++i) {
        const float u = i == 0   ? 0
                        : i == 1 ? 0x1.fffffep-1f
                                 : float(rng.uniform()) * 0.999f;
        const std::int32_t at = drawn(f, p, {u})[0];
        double below = 0;
        for (std::int32_t j = 0; j < at; ++j) below += p[std::size_t(j)];
        REQUIRE(p[std::size_t(at)] > 0);
        REQUIRE(below <= u + 1e-9);
        if (i != 1) REQUIRE(below + p[std::size_t(at)] > u - 1e-9);
      }
    }
}

TEST_CASE("sample at the borders of intervals") {
  for (const Function f : kBoth) {
    const std::vector<float> p = {0, 0.25f, 0, 0.5f, 0.25f, 0};
    const auto at = [&](float u) { return drawn(f, p, {u})[0]; };
    CHECK(at(0) == 1);
    CHECK(at(0x1.fffffep-3f) == 1);
    CHECK(at(0.25f) == 3);  // the sum must exceed u
    CHECK(at(0.75f) == 4);
    CHECK(at(0x1.fffffep-1f) == 4);
    // Rows are independent, and a sum that stays below u gives the last positive index.
    CHECK(drawn(f, {0.5f, 0.25f, 0, 0x1p-140f, 1, 0}, {0.9f, 0.9f, 0.9f}) ==
          std::vector<std::int32_t>{1, 1, 0});
    CHECK(drawn(f, {0.5f, 0x1p-140f, 0}, {0.9f}) == std::vector<std::int32_t>{1});
  }
}

TEST_CASE("sample draws each index as often as its probability says") {
  const std::vector<float> p = {0.1f, 0.4f, 0, 0.2f, 0.3f};
  Rng rng(3);
  for (const Function f : kBoth) {
    std::vector<int> count(p.size());
    const int draws = 20000;
    for (int i = 0; i < draws; ++i)
      ++count[std::size_t(drawn(f, p, {float(rng.uniform() * 0.9999999)})[0])];
    for (std::size_t i = 0; i < p.size(); ++i)
      CHECK(std::abs(count[i] - draws * p[i]) <= 5 * std::sqrt(draws * p[i]));
  }
}

TEST_CASE("sample refuses what is no probability and what is no uniform number") {
  for (const Function f : kBoth) {
    const auto said = [&](const std::vector<float>& p, float u) {
      return message_of([&] { drawn(f, p, {0.5f, u}); });
    };
    for (const float bad : {-0.1f, 1.5f, INFINITY, NAN})
      CHECK(
          said({0, 1, 1, bad}, 0.5f) ==
          fmt::format("sample: p[1][1] is {}, which is no probability; give the softmax of "
                      "a row",
                      bad));
    for (const float bad : {-0.1f, 1.0f, NAN})
      CHECK(said({0, 1, 0, 1}, bad) ==
            fmt::format("sample: u[1] is {}; give numbers in [0, 1)", bad));
    CHECK(said({0, 1, 0, 0}, 0.5f) ==
          "sample: row 1 of p has no positive probability; give the softmax of a row");
    std::int32_t out[2];
    const float v[4] = {};
    CHECK(message_of([&] {
            f({out, {1}}, {v, {2, 2}}, {v, {2}});
          }) == "sample: out has n_tokens=1 but p is (n_tokens=2, vocab_size=2)");
    CHECK(message_of([&] {
            f({out, {2}}, {v, {2, 2}}, {v, {1}});
          }) == "sample: u has n_tokens=1 but p is (n_tokens=2, vocab_size=2)");
    CHECK(message_of([&] {
            f({out, {2}}, {v, {2, 0}}, {v, {2}});
          }) ==
          "sample: p is (n_tokens=2, vocab_size=0); a row needs at least one element");
    f({out, {0}}, {v, {0, 2}}, {v, {0}});
  }
}
