#include "lab/kernels/add.hpp"
#include "kernels/support.hpp"
#include "lab/kernels/check.hpp"

using namespace lab;
using namespace lab::test;

TEST_CASE("add is exact, in place too, and lets NaN and infinity through") {
  for (const std::int64_t n : {0, 1, 31, 33, 127, 1025, 70000}) {
    Rng rng(6);
    auto a = random_floats(rng, n);
    const auto b = random_floats(rng, n);
    if (n > 31) a[30] = NAN, a[17] = INFINITY;
    const auto check = [&](const auto& f) {
      Guarded<float> out(n);
      f(out.view({1, n}), view_of(a, {1, n}), view_of(b, {1, n}));
      REQUIRE(out.intact());
      std::vector<float> expected;
      for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(a[i] + b[i]);
      REQUIRE(mismatch(out.data(), expected.data(), n, 0, 0) == "");
      std::copy(b.begin(), b.end(), out.data());
      f(out.view({1, n}), view_of(a, {1, n}), out.view({1, n}));
      REQUIRE(mismatch(out.data(), expected.data(), n, 0, 0) == "");
    };
    check(cpu::reference::add);
    each_instruction_set([&] { check(cpu::add); });
  }
}

TEST_CASE("add says which shapes disagree") {
  std::vector<float> v(64);
  for (const auto& f : {cpu::add, cpu::reference::add}) {
    const auto run = [&](Extents<2> out, Extents<2> b) {
      return message_of([&] { f({v.data(), out}, {v.data(), {2, 3}}, {v.data(), b}); });
    };
    CHECK(run({2, 4}, {2, 3}) ==
          "add: out is (n_tokens=2, model_dim=4) but a is (n_tokens=2, model_dim=3); give "
          "both "
          "the same shape");
    CHECK(run({2, 3}, {1, 3}) ==
          "add: a is (n_tokens=2, model_dim=3) but b is (n_tokens=1, model_dim=3); give "
          "both the "
          "same shape");
  }
}
