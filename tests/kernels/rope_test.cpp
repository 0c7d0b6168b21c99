#include <complex>

#include "kernels/support.hpp"
#include "lab/kernels/check.hpp"
#include "lab/kernels/rope.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::vector<float> inverse_frequencies(std::int64_t pairs) {
  std::vector<float> f;
  for (std::int64_t i = 0; i < pairs; ++i)
    f.push_back(float(std::pow(10000.0, -double(i) / double(pairs))));
  return f;
}

}  // namespace

TEST_CASE("rope_angles are cos and sin of position times frequency, rounded once") {
  const std::vector<std::int32_t> positions = {0, 1, 7, 2047, 131071};
  const auto freq = inverse_frequencies(33);
  for (const auto& angles : {cpu::rope_angles, cpu::reference::rope_angles}) {
    Guarded<float> cos(5 * 33), sin(5 * 33);
    angles(cos.view({5, 33}), sin.view({5, 33}), {positions.data(), {5}},
           view_of(freq, {33}));
    for (std::int64_t t = 0; t < 5; ++t)
      for (std::int64_t i = 0; i < 33; ++i) {
        const float angle = float(positions[std::size_t(t)]) * freq[std::size_t(i)];
        REQUIRE(cos[t * 33 + i] == float(std::cos(double(angle))));
        REQUIRE(sin[t * 33 + i] == float(std::sin(double(angle))));
      }
    REQUIRE(cos.intact());
    REQUIRE(sin.intact());
  }
}

TEST_CASE("rope multiplies each pair, as a complex number, by e^(i angle)") {
  for (const RopeLayout layout : {RopeLayout::interleaved, RopeLayout::half_split})
    for (const std::int64_t head_dim : {2, 16, 30, 32, 34, 48, 64, 80, 128})
      for (const std::int64_t n_tokens : {0, 1, 5}) {
        const std::int64_t heads = 3, pairs = head_dim / 2, n = n_tokens * heads * head_dim;
        INFO("interleaved=" << (layout == RopeLayout::interleaved)
                            << " head_dim=" << head_dim);
        Rng rng(8);
        const auto x = random_floats(rng, n),
                   angle = random_floats(rng, n_tokens * pairs, 3);
        std::vector<float> cos, sin, expected = x;
        for (const float a : angle) cos.push_back(std::cos(a)), sin.push_back(std::sin(a));
        for (std::int64_t r = 0; r < n_tokens * heads; ++r)
          for (std::int64_t i = 0; i < pairs; ++i) {
            const bool apart = layout == RopeLayout::half_split;
            const std::int64_t a = r * head_dim + (apart ? i : 2 * i),
                               b = apart ? a + pairs : a + 1;
            const std::size_t at = std::size_t(r / heads * pairs + i);
            const auto z = std::complex<double>(x[std::size_t(a)], x[std::size_t(b)]) *
                           std::complex<double>(cos[at], sin[at]);
            expected[std::size_t(a)] = float(z.real());
            expected[std::size_t(b)] = float(z.imag());
          }
        const auto check = [&](const auto& rotate) {
          Guarded<float> y(n);
          std::copy(x.begin(), x.end(), y.data());
          rotate(y.view({n_tokens, heads, head_dim}), view_of(cos, {n_tokens, pairs}),
                 view_of(sin, {n_tokens, pairs}), layout);
          REQUIRE(mismatch(y.data(), expected.data(), n, 1e-6, 1e-5) == "");
          REQUIRE(y.intact());
        };
        check(cpu::reference::rope);
        each_instruction_set([&] { check(cpu::rope); });
      }
}

TEST_CASE("rope keeps NaN in its pair") {
  each_instruction_set([] {
    std::vector<float> x(64, 1.0f), one(32, 1.0f);
    x[6] = NAN;
    cpu::rope({x.data(), {1, 1, 64}}, view_of(one, {1, 32}), view_of(one, {1, 32}),
              RopeLayout::interleaved);
    for (std::size_t i = 0; i < 64; ++i) REQUIRE(std::isnan(x[i]) == (i / 2 == 3));
  });
}

TEST_CASE("rope says which shapes disagree") {
  std::vector<float> v(256);
  for (const auto& rotate : {cpu::rope, cpu::reference::rope}) {
    const auto run = [&](std::int64_t head_dim, Extents<2> cos, Extents<2> sin) {
      return message_of([&] {
        rotate({v.data(), {2, 3, head_dim}}, {v.data(), cos}, {v.data(), sin},
               RopeLayout::interleaved);
      });
    };
    CHECK(run(7, {2, 3}, {2, 3}) ==
          "rope: x is (n_tokens=2, n_heads=3, head_dim=7) but rotation needs an even "
          "head_dim");
    CHECK(run(8, {2, 4}, {2, 3}) ==
          "rope: cos is (n_tokens=2, head_dim/2=4) but sin is (n_tokens=2, head_dim/2=3); "
          "give "
          "both the same shape");
    CHECK(run(8, {1, 4}, {1, 4}) ==
          "rope: cos is (n_tokens=1, head_dim/2=4) but x is (n_tokens=2, n_heads=3, "
          "head_dim=8)");
  }
  const std::int32_t p[3] = {};
  for (const auto& angles : {cpu::rope_angles, cpu::reference::rope_angles}) {
    const auto run = [&](Extents<2> sin, std::int64_t n, std::int64_t pairs) {
      return message_of([&] {
        angles({v.data(), {2, 4}}, {v.data(), sin}, {p, {n}}, {v.data(), {pairs}});
      });
    };
    CHECK(run({2, 5}, 2, 4) ==
          "rope_angles: cos is (n_tokens=2, head_dim/2=4) but sin is (n_tokens=2, "
          "head_dim/2=5); "
          "give both the same shape");
    CHECK(run({2, 4}, 3, 4) ==
          "rope_angles: positions has n_tokens=3 but cos is (n_tokens=2, head_dim/2=4)");
    CHECK(run({2, 4}, 2, 3) ==
          "rope_angles: inv_freq has head_dim/2=3 but cos is (n_tokens=2, head_dim/2=4)");
  }
}
