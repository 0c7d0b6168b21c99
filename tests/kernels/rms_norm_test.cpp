#include "lab/kernels/rms_norm.hpp"
#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

TEST_CASE("rms_norm is x weight / sqrt(mean(x^2) + eps) in double precision") {
  for (const std::int64_t n : {1, 2, 31, 33, 64, 127, 576, 1025})
    for (const std::int64_t n_tokens : {0, 1, 3, 100}) {
      INFO("n_tokens=" << n_tokens << " model_dim=" << n);
      Rng rng(3);
      const auto weight = random_floats(rng, n);
      // The first token is so small that eps matters.
      auto x = random_floats(rng, n_tokens * n, 2);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(n, n_tokens * n); ++i)
        x[std::size_t(i)] *= 1e-3f;
      std::vector<float> expected;
      for (std::int64_t t = 0; t < n_tokens; ++t) {
        double squares = 0;
        for (std::int64_t d = 0; d < n; ++d)
          squares += std::pow(double(x[std::size_t(t * n + d)]), 2);
        for (std::int64_t d = 0; d < n; ++d)
          expected.push_back(
              float(x[std::size_t(t * n + d)] * double(weight[std::size_t(d)]) /
                    std::sqrt(squares / double(n) + double(1e-5f))));
      }
      Guarded<float> plain(n_tokens * n);
      cpu::reference::rms_norm(plain.view({n_tokens, n}), view_of(x, {n_tokens, n}),
                               view_of(weight, {n}), 1e-5f);
      REQUIRE(mismatch(plain.data(), expected.data(), n_tokens * n, 1e-6, 1e-5) == "");
      REQUIRE(plain.intact());
      each_instruction_set([&] {
        Guarded<float> out(n_tokens * n), in_place(n_tokens * n);
        cpu::rms_norm(out.view({n_tokens, n}), view_of(x, {n_tokens, n}),
                      view_of(weight, {n}), 1e-5f);
        REQUIRE(mismatch(out.data(), expected.data(), n_tokens * n, 1e-6, 1e-5) == "");
        std::copy(x.begin(), x.end(), in_place.data());
        const auto same = in_place.view({n_tokens, n});
        cpu::rms_norm(same, same, view_of(weight, {n}), 1e-5f);
        REQUIRE(mismatch(in_place.data(), out.data(), n_tokens * n, 0, 0) == "");
        REQUIRE(out.intact());
        REQUIRE(in_place.intact());
      });
    }
}

TEST_CASE("rms_norm keeps NaN in its row") {
  std::vector<float> x(3 * 33, 1.0f);
  const std::vector<float> weight(33, 1.0f);
  x[33 + 32] = NAN;
  each_instruction_set([&] {
    Guarded<float> out(99);
    cpu::rms_norm(out.view({3, 33}), view_of(x, {3, 33}), view_of(weight, {33}), 1e-5f);
    for (std::int64_t i = 0; i < 99; ++i) REQUIRE(std::isnan(out[i]) == (i / 33 == 1));
  });
}

TEST_CASE("rms_norm says which shapes disagree") {
  std::vector<float> v(5 * 128);
  for (const auto& norm : {cpu::rms_norm, cpu::reference::rms_norm}) {
    CHECK(message_of([&] {
            norm({v.data(), {5, 128}}, {v.data(), {5, 128}}, {v.data(), {64}}, 0);
          }) == "rms_norm: weight has model_dim=64 but x is (n_tokens=5, model_dim=128)");
    CHECK(message_of([&] {
            norm({v.data(), {4, 128}}, {v.data(), {5, 128}}, {v.data(), {128}}, 0);
          }) ==
          "rms_norm: out is (n_tokens=4, model_dim=128) but x is (n_tokens=5, "
          "model_dim=128); "
          "give both the same shape");
  }
}
