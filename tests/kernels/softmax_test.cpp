#include "lab/kernels/softmax.hpp"
#include "kernels/support.hpp"
#include "lab/kernels/check.hpp"

using namespace lab;
using namespace lab::test;

namespace {

void check_all(const std::vector<float>& x, std::int64_t n_tokens, std::int64_t n) {
  std::vector<float> expected;
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    const float* row = x.data() + t * n;
    double largest = -INFINITY, sum = 0;
    for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, double(row[i]));
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(row[i] - largest);
    for (std::int64_t i = 0; i < n; ++i)
      expected.push_back(float(std::exp(row[i] - largest) / sum));
  }
  const auto check = [&](const auto& f) {
    Guarded<float> out(n_tokens * n);
    f(out.view({n_tokens, n}), view_of(x, {n_tokens, n}));
    // 1e-5 of an element however small it is: a wrong exponential shows in the tail.
    REQUIRE(mismatch(out.data(), expected.data(), n_tokens * n, 1e-37, 1e-5) == "");
    REQUIRE(out.intact());
    std::copy(x.begin(), x.end(), out.data());
    f(out.view({n_tokens, n}), out.view({n_tokens, n}));
    REQUIRE(mismatch(out.data(), expected.data(), n_tokens * n, 1e-37, 1e-5) == "");
  };
  check(cpu::reference::softmax);
  each_instruction_set([&] { check(cpu::softmax); });
}

}  // namespace

TEST_CASE("softmax is exp(x) / sum(exp(x)) in double precision") {
  for (const std::int64_t n : {1, 2, 15, 16, 17, 31, 33, 127, 1025, 49152})
    for (const std::int64_t n_tokens : {0, 1, 3}) {
      INFO("n_tokens=" << n_tokens << " vocab_size=" << n);
      Rng rng(12);
      check_all(random_floats(rng, n_tokens * n, 10), n_tokens, n);
    }
}

TEST_CASE("softmax takes large magnitudes and masked entries") {
  Rng rng(13);
  auto x = random_floats(rng, 4 * 33, 1e4f);
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = -INFINITY;
  for (std::size_t i = 66; i < 98; ++i) x[i] = -INFINITY;  // all but the last
  for (std::size_t i = 99; i < 132; ++i) x[i] = 88.0f - float(i - 99) * 5;
  check_all(x, 4, 33);
}

TEST_CASE("a row without a softmax is NaN, and only that row") {
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> x(3 * 40, 1.0f);
    x[40 + 35] = bad;
    each_instruction_set([&] {
      Guarded<float> out(120);
      cpu::softmax(out.view({3, 40}), view_of(x, {3, 40}));
      for (std::int64_t i = 0; i < 120; ++i) REQUIRE(std::isnan(out[i]) == (i / 40 == 1));
    });
  }
  std::vector<float> masked(33, -INFINITY);
  each_instruction_set([&] {
    Guarded<float> out(33);
    cpu::softmax(out.view({1, 33}), view_of(masked, {1, 33}));
    for (std::int64_t i = 0; i < 33; ++i) REQUIRE(std::isnan(out[i]));
  });
}

TEST_CASE("softmax says which shapes disagree") {
  std::vector<float> v(64);
  for (const auto& f : {cpu::softmax, cpu::reference::softmax})
    CHECK(message_of([&] {
            f({v.data(), {2, 4}}, {v.data(), {2, 3}});
          }) ==
          "softmax: out is (n_tokens=2, vocab_size=4) but x is (n_tokens=2, vocab_size=3); "
          "give "
          "both the same shape");
}
