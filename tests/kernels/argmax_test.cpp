#include "lab/kernels/argmax.hpp"
#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

/// Checks every version on x (n_tokens, n) against `expected`.
void check_all(const std::vector<float>& x, std::int64_t n,
               const std::vector<std::int32_t>& expected) {
  const std::int64_t n_tokens = std::int64_t(expected.size());
  const auto check = [&](const auto& f) {
    Guarded<std::int32_t> out(n_tokens);
    f(out.view({n_tokens}), view_of(x, {n_tokens, n}));
    for (std::int64_t t = 0; t < n_tokens; ++t) REQUIRE(out[t] == expected[std::size_t(t)]);
    REQUIRE(out.intact());
  };
  check(cpu::reference::argmax);
  each_instruction_set([&] { check(cpu::argmax); });
}

}  // namespace

TEST_CASE("argmax finds the largest element wherever it is, and the first of equals") {
  check_all({}, 5, {});
  for (const std::int64_t n : {1, 15, 16, 17, 31, 33, 127, 1025})
    for (std::int64_t at = 0; at < n; at += n / 9 + 1) {
      Rng rng(std::uint64_t(n + at));
      auto x = random_floats(rng, 2 * n);
      x[std::size_t(at)] = x[std::size_t(n + n - 1)] = 50;
      check_all(x, n, {std::int32_t(at), std::int32_t(n - 1)});
      for (std::int64_t i = at; i < n; ++i) x[std::size_t(i)] = 50;
      check_all(x, n, {std::int32_t(at), std::int32_t(n - 1)});
    }
  check_all(std::vector<float>(40, -INFINITY), 20, {0, 0});
  check_all({-0.0f, 0.0f, -1.0f}, 3, {0});
  check_all({-3, -2, -INFINITY, INFINITY}, 4, {3});
}

TEST_CASE("argmax refuses NaN and names the row") {
  for (const std::int64_t at : {0, 20, 33}) {
    std::vector<float> x(3 * 34, 1.0f);
    x[std::size_t(34 + at)] = NAN;
    std::vector<std::int32_t> out(3);
    const std::string expected = fmt::format(
        "argmax: x[1][{}] is NaN, so row 1 has no largest element; look for the operation "
        "that "
        "produced it",
        at);
    const auto run = [&](const auto& f) {
      return message_of([&] {
        f(HostView<std::int32_t, 1>{out.data(), {3}}, view_of(x, {3, 34}));
      });
    };
    CHECK(run(cpu::reference::argmax) == expected);
    each_instruction_set([&] { CHECK(run(cpu::argmax) == expected); });
  }
}

TEST_CASE("argmax says which shapes disagree") {
  std::vector<float> v(64);
  std::int32_t i[4];
  for (const auto& f : {cpu::argmax, cpu::reference::argmax}) {
    CHECK(message_of([&] {
            f({i, {3}}, {v.data(), {2, 3}});
          }) == "argmax: out has n_tokens=3 but x is (n_tokens=2, vocab_size=3)");
    CHECK(message_of([&] {
            f({i, {2}}, {v.data(), {2, 0}});
          }) ==
          "argmax: x is (n_tokens=2, vocab_size=0); a row needs at least one element");
  }
}
