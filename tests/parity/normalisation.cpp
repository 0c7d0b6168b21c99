#include "lab/kernels/rms_norm.hpp"
#include "lab/kernels/softmax.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

void check_rms_norm(const std::vector<float>& x, std::int64_t n_tokens, std::int64_t n,
                    float eps, int skew = 0) {
  Rng rng(2);
  const auto weight = random_floats(rng, n);
  std::vector<float> expected(x.size());
  cpu::reference::rms_norm({expected.data(), {n_tokens, n}}, view_of(x, {n_tokens, n}),
                           view_of(weight, {n}), eps);
  const DeviceArray<float> dx(x, skew), dw(weight);
  const auto out = DeviceArray<float>::output(n_tokens * n);
  gpu::rms_norm(out.view({n_tokens, n}), dx.view({n_tokens, n}), dw.view({n}), eps,
                stream());
  LAB_REQUIRE_CLOSE(out, expected, 1e-37, 1e-5);
  const auto in_place = DeviceArray<float>::output(x, skew);
  gpu::rms_norm(in_place.view({n_tokens, n}), in_place.view({n_tokens, n}), dw.view({n}),
                eps, stream());
  LAB_REQUIRE_CLOSE(in_place, expected, 1e-37, 1e-5);
}

void check_softmax(const std::vector<float>& x, std::int64_t n_tokens, std::int64_t n,
                   int skew = 0) {
  std::vector<float> expected(x.size());
  cpu::reference::softmax({expected.data(), {n_tokens, n}}, view_of(x, {n_tokens, n}));
  const DeviceArray<float> dx(x, skew);
  const auto out = DeviceArray<float>::output(n_tokens * n);
  gpu::softmax(out.view({n_tokens, n}), dx.view({n_tokens, n}), stream());
  LAB_REQUIRE_CLOSE(out, expected, 1e-37, 1e-5);
  const auto in_place = DeviceArray<float>::output(x, skew);
  gpu::softmax(in_place.view({n_tokens, n}), in_place.view({n_tokens, n}), stream());
  LAB_REQUIRE_CLOSE(in_place, expected, 1e-37, 1e-5);
}

}  // namespace

LAB_PARITY(rms_norm, "odd sizes, in place, off alignment") {
  for (const std::int64_t n : {1, 3, 4, 31, 33, 127, 512, 513, 1000, 1025, 2048, 4100})
    for (const std::int64_t n_tokens : {0, 1, 3, 5})
      for (const int skew : {0, 1}) {
        if (kTraced && (n > 1025 || n_tokens > 3)) continue;
        CAPTURE(n_tokens, n, skew);
        Rng rng(3);
        check_rms_norm(random_floats(rng, n_tokens * n), n_tokens, n, 1e-5f, skew);
      }
}

LAB_PARITY(rms_norm, "extreme values, each spoiling only its row") {
  for (const std::int64_t n : {40, 600})
    for (const float extreme :
         {0x1p-149f, 0x1p-100f, 1e18f, 1e19f, 3.4e38f, INFINITY, -INFINITY, NAN}) {
      CAPTURE(n, extreme);
      std::vector<float> x(std::size_t(3 * n), 0x1p-120f);
      x[std::size_t(n + n - 1)] = extreme;
      check_rms_norm(x, 3, n, 1e-5f);
      check_rms_norm(x, 3, n, 1e-30f);
    }
  check_rms_norm(std::vector<float>(80, 0.0f), 2, 40, 0);
}

LAB_PARITY(rms_norm, "shapes that disagree") {
  float v[8];
  const DeviceArray<float> d(std::vector<float>(8, 1.0f));
  const std::string on_cpu = message_of([&] {
    cpu::rms_norm({v, {2, 4}}, {v, {2, 4}}, {v, {3}}, 0);
  });
  CHECK(on_cpu != "");
  CHECK(message_of([&] {
          gpu::rms_norm(d.view({2, 4}), d.view({2, 4}), d.view({3}), 0, stream());
        }) == on_cpu);
}

LAB_PARITY(softmax, "odd sizes, in place, off alignment") {
  for (const std::int64_t n : {0, 1, 3, 4, 31, 33, 127, 512, 513, 1000, 1025, 2052, 5000})
    for (const std::int64_t n_tokens : {0, 1, 3, 5})
      for (const int skew : {0, 1}) {
        if (kTraced && (n > 1025 || n_tokens > 3)) continue;
        CAPTURE(n_tokens, n, skew);
        Rng rng(4);
        check_softmax(random_floats(rng, n_tokens * n, 10), n_tokens, n, skew);
      }
}

LAB_PARITY(softmax, "rows as long as a vocabulary, few and many") {
  for (const std::int64_t n : {16384, 16387, 50257, 49152, 300000})
    for (const std::int64_t n_tokens : {1, 2, 33}) {
      if ((kTraced && n > 16387) || n * n_tokens > (kTraced ? 40000 : 600000)) continue;
      CAPTURE(n_tokens, n);
      Rng rng(5);
      check_softmax(random_floats(rng, n_tokens * n, 10), n_tokens, n);
    }
}

LAB_PARITY(softmax, "large magnitudes, masked entries, rows without a softmax") {
  for (const std::int64_t n : {33, 700, 16400}) {
    CAPTURE(n);
    Rng rng(6);
    auto x = random_floats(rng, 9 * n, 1e4f);
    const auto row = [&](std::int64_t t) { return x.begin() + t * n; };
    for (std::int64_t i = 0; i < n; i += 3) row(0)[i] = -INFINITY;
    std::fill(row(1), row(2) - 1, -INFINITY);  // all but the last
    for (std::int64_t i = 0; i < n; ++i) row(2)[i] = 88.0f - float(i % 200);
    std::fill(row(3), row(4), -INFINITY);
    row(4)[n - 1] = INFINITY;
    row(5)[n / 2] = NAN;
    std::fill(row(6), row(7), NAN);
    std::fill(row(7), row(8), -INFINITY);
    row(7)[n / 2] = NAN;
    for (std::int64_t i = 0; i < n; ++i) row(8)[i] = i % 2 ? 3.4e38f : -3.4e38f;
    check_softmax(x, 9, n);
  }
}

LAB_PARITY(softmax, "shapes that disagree") {
  float v[8];
  const DeviceArray<float> d(std::vector<float>(8, 1.0f));
  const std::string on_cpu = message_of([&] { cpu::softmax({v, {2, 4}}, {v, {2, 3}}); });
  CHECK(on_cpu != "");
  CHECK(message_of([&] {
          gpu::softmax(d.view({2, 4}), d.view({2, 3}), stream());
        }) == on_cpu);
}
