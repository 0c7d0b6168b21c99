#include "lab/kernels/silu_mul.hpp"
#include "kernels/support.hpp"
#include "lab/kernels/check.hpp"

using namespace lab;
using namespace lab::test;

TEST_CASE("silu_mul is g / (1 + e^-g) * u in double precision") {
  for (const std::int64_t n : {0, 1, 15, 31, 33, 127, 1025, 70000}) {
    Rng rng(6);
    auto gate = random_floats(rng, n, 5), up = random_floats(rng, n);
    const float extremes[] = {0,     -0.0f,  88.8f,  -88.8f, 200,    -200,
                              1e30f, -1e30f, 1e-40f, -87.5f, -103.9f};
    for (std::size_t i = 0; i < std::min(gate.size(), std::size(extremes)); ++i)
      gate[i] = extremes[i];
    std::vector<float> expected;
    for (std::size_t i = 0; i < gate.size(); ++i)
      expected.push_back(float(gate[i] / (1 + std::exp(-double(gate[i]))) * up[i]));
    const auto check = [&](const auto& f) {
      Guarded<float> out(n);
      f(out.view({1, n}), view_of(gate, {1, n}), view_of(up, {1, n}));
      REQUIRE(mismatch(out.data(), expected.data(), n, 1e-6, 1e-5) == "");
      REQUIRE(out.intact());
      std::copy(gate.begin(), gate.end(), out.data());  // in place
      f(out.view({1, n}), out.view({1, n}), view_of(up, {1, n}));
      REQUIRE(mismatch(out.data(), expected.data(), n, 1e-6, 1e-5) == "");
    };
    check(cpu::reference::silu_mul);
    each_instruction_set([&] { check(cpu::silu_mul); });
  }
}

TEST_CASE("silu_mul lets NaN and infinity through") {
  each_instruction_set([] {
    std::vector<float> gate(20, 1.0f), up(20, 1.0f);
    gate[3] = NAN, gate[18] = INFINITY, up[7] = NAN, up[8] = -INFINITY;
    Guarded<float> out(20);
    cpu::silu_mul(out.view({1, 20}), view_of(gate, {1, 20}), view_of(up, {1, 20}));
    for (std::int64_t i = 0; i < 20; ++i) REQUIRE(std::isnan(out[i]) == (i == 3 || i == 7));
    REQUIRE(out[18] == INFINITY);
    REQUIRE(out[8] == -INFINITY);
  });
}

TEST_CASE("silu_mul says which shapes disagree") {
  std::vector<float> v(64);
  for (const auto& f : {cpu::silu_mul, cpu::reference::silu_mul}) {
    const auto run = [&](Extents<2> out, Extents<2> up) {
      return message_of([&] { f({v.data(), out}, {v.data(), {2, 3}}, {v.data(), up}); });
    };
    CHECK(run({2, 4}, {2, 3}) ==
          "silu_mul: out is (n_tokens=2, ffn_dim=4) but gate is (n_tokens=2, ffn_dim=3); "
          "give "
          "both the same shape");
    CHECK(
        run({2, 3}, {1, 3}) ==
        "silu_mul: gate is (n_tokens=2, ffn_dim=3) but up is (n_tokens=1, ffn_dim=3); give "
        "both the same shape");
  }
}
