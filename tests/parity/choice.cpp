#include "lab/kernels/argmax.hpp"
#include "lab/kernels/sample.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::vector<std::int32_t> gpu_argmax(const std::vector<float>& x, std::int64_t n_tokens,
                                     std::int64_t n, int skew = 0) {
  const DeviceArray<float> dx(x, skew);
  const auto out = DeviceArray<std::int32_t>::output(n_tokens);
  gpu::argmax(out.view({n_tokens}), dx.view({n_tokens, n}), stream());
  REQUIRE(out.intact());
  return out.host();
}
void check_argmax(const std::vector<float>& x, std::int64_t n_tokens, std::int64_t n,
                  int skew = 0) {
  std::vector<std::int32_t> expected(static_cast<std::size_t>(n_tokens));
  cpu::reference::argmax({expected.data(), {n_tokens}}, view_of(x, {n_tokens, n}));
  REQUIRE(gpu_argmax(x, n_tokens, n, skew) == expected);
}

std::vector<std::int32_t> gpu_sample(const std::vector<float>& p,
                                     const std::vector<float>& u, std::int64_t n,
                                     int skew = 0) {
  const std::int64_t n_tokens = std::int64_t(u.size());
  const DeviceArray<float> dp(p, skew), du(u);
  const auto out = DeviceArray<std::int32_t>::output(n_tokens);
  gpu::sample(out.view({n_tokens}), dp.view({n_tokens, n}), du.view({n_tokens}), stream());
  REQUIRE(out.intact());
  return out.host();
}
void check_sample(const std::vector<float>& p, const std::vector<float>& u, std::int64_t n,
                  int skew = 0) {
  const std::int64_t n_tokens = std::int64_t(u.size());
  std::vector<std::int32_t> expected(u.size());
  cpu::reference::sample({expected.data(), {n_tokens}}, view_of(p, {n_tokens, n}),
                         view_of(u, {n_tokens}));
  REQUIRE(gpu_sample(p, u, n, skew) == expected);
}

/// Rows of probabilities, a fifth of them 0.
std::vector<float> random_rows(Rng& rng, std::int64_t n_tokens, std::int64_t n) {
  std::vector<float> p(std::size_t(n_tokens * n));
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    float* row = p.data() + t * n;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
      sum += row[i] = i && rng.below(5) == 0 ? 0 : float(std::exp(3 * rng.normal()));
    for (std::int64_t i = 0; i < n; ++i) row[i] = float(row[i] / sum);
  }
  return p;
}

}  // namespace

LAB_PARITY(argmax, "the largest anywhere, and the first of equals") {
  for (const std::int64_t n : {1, 3, 31, 33, 127, 1000, 2049, 16387, 50000})
    for (const std::int64_t n_tokens : {0, 1, 3, 33})
      for (const int skew : {0, 1}) {
        if (n * n_tokens > (kTraced ? 20000 : 200000)) continue;
        CAPTURE(n_tokens, n, skew);
        Rng rng(8);
        auto x = random_floats(rng, n_tokens * n);
        check_argmax(x, n_tokens, n, skew);
        for (std::int64_t t = 0; t < n_tokens; ++t) {
          const std::int64_t at = t * n + rng.below(n);
          x[std::size_t(at)] = 50;
          for (std::int64_t i = at; i < t * n + n; i += 7) x[std::size_t(i)] = 50;
        }
        check_argmax(x, n_tokens, n, skew);
      }
}

LAB_PARITY(argmax, "extreme values") {
  for (const std::int64_t n : {40, 16400}) {
    check_argmax(std::vector<float>(std::size_t(2 * n), -INFINITY), 2, n);
    std::vector<float> x(std::size_t(5 * n), -1.0f);
    const auto row = [&](std::int64_t t) { return x.begin() + t * n; };
    row(0)[7] = -0.0f, row(0)[n - 1] = 0.0f;  // equal
    row(1)[9] = -0x1p-149f, row(1)[11] = 0x1p-149f;
    row(2)[n - 1] = INFINITY;
    std::fill(row(3), row(4), -3.4e38f);
    std::fill(row(4), row(5), -INFINITY);
    row(4)[n - 1] = -3.4e38f;
    check_argmax(x, 5, n);
  }
}

LAB_PARITY(argmax, "a row with NaN, and only that, gives -1") {
  for (const std::int64_t n : {1, 40, 16400})
    for (const std::int64_t at : {std::int64_t(0), n / 2, n - 1})
      for (const float nan : {NAN, -NAN}) {
        CAPTURE(n, at);
        std::vector<float> x(std::size_t(3 * n), 1.0f);
        x[std::size_t(n + at)] = nan;
        x[std::size_t(n)] = at ? INFINITY : nan;
        REQUIRE(gpu_argmax(x, 3, n) == std::vector<std::int32_t>{0, -1, 0});
      }
}

LAB_PARITY(argmax, "shapes that disagree") {
  float v[6] = {};
  std::int32_t i[3];
  const DeviceArray<float> d(std::vector<float>(6, 1.0f));
  const auto out = DeviceArray<std::int32_t>::output(3);
  for (const auto& [rows, n_tokens, n] :
       {std::array<std::int64_t, 3>{3, 2, 3}, std::array<std::int64_t, 3>{2, 2, 0}}) {
    const std::string on_cpu = message_of([&, r = rows, t = n_tokens, w = n] {
      cpu::argmax({i, {r}}, {v, {t, w}});
    });
    CHECK(on_cpu != "");
    CHECK(message_of([&, r = rows, t = n_tokens, w = n] {
            gpu::argmax(out.view({r}), d.view({t, w}), stream());
          }) == on_cpu);
  }
}

LAB_PARITY(sample, "the same index for the same u, whatever the size") {
  for (const std::int64_t n : {1, 3, 4, 31, 33, 127, 1000, 1023, 4100, 50257})
    for (const std::int64_t n_tokens : {0, 1, 3, 20})
      for (const int skew : {0, 1}) {
        if (n * n_tokens > (kTraced ? 15000 : 200000)) continue;
        CAPTURE(n_tokens, n, skew);
        Rng rng(9);
        const auto p = random_rows(rng, n_tokens, n);
        std::vector<float> u(static_cast<std::size_t>(n_tokens));
        for (float& v : u) v = std::min(float(rng.uniform()), 0x1.fffffep-1f);
        if (n_tokens > 1) u[0] = 0, u[1] = 0x1.fffffep-1f;
        check_sample(p, u, n, skew);
      }
}

LAB_PARITY(sample, "the borders of every interval") {
  // Multiples of 2^-10 have exact sums: u lies on a border, or just below it.
  const std::int64_t n = 260;
  std::vector<float> p(static_cast<std::size_t>(n), 0x1p-10f);
  p[3] = 0, p[100] = 0, p[n - 2] = 1 - float(n - 4) * 0x1p-10f, p[n - 1] = 0;
  std::vector<float> rows, u;
  for (std::int64_t k = 0; k < n; k += kTraced ? 17 : 1)
    for (const float border :
         {float(k) * 0x1p-10f, std::nextafter(float(k) * 0x1p-10f, -1.0f)})
      if (border >= 0) {
        rows.insert(rows.end(), p.begin(), p.end());
        u.push_back(border);
      }
  check_sample(rows, u, n);
}

LAB_PARITY(sample, "one certain index, tiny probabilities, a sum below u") {
  for (const std::int64_t n : {5, 1000, 3000})
    for (const std::int64_t at : {std::int64_t(0), n / 2, n - 1}) {
      CAPTURE(n, at);
      std::vector<float> p(static_cast<std::size_t>(n), 0.0f);
      p[std::size_t(at)] = 1;
      check_sample(p, {0.999f}, n);
      p[std::size_t(at)] = 0x1p-149f;  // no unit at all
      check_sample(p, {0}, n);
      p[0] = 0.25f;
      check_sample(p, {0.5f}, n);
      check_sample(p, {0.25f}, n);
    }
  check_sample(std::vector<float>(3000, 0x1p-14f), {0.5f}, 3000);  // every warp has some
}

LAB_PARITY(sample, "a row that the CPU refuses, and only that, gives -1") {
  for (const std::int64_t n : {4, 2000})
    for (const float bad : {-0.1f, 1.5f, INFINITY, NAN, -NAN}) {
      CAPTURE(n, bad);
      std::vector<float> p(std::size_t(3 * n), 1 / float(n));
      p[std::size_t(2 * n - 1)] = bad;
      REQUIRE(gpu_sample(p, {0, 0, 0}, n) == std::vector<std::int32_t>{0, -1, 0});
    }
  for (const float bad : {-0.1f, 1.0f, INFINITY, NAN})
    REQUIRE(gpu_sample({1, 1, 1}, {0, bad, 0}, 1) == std::vector<std::int32_t>{0, -1, 0});
  REQUIRE(gpu_sample({1, 0, 0, 0, 1, 0}, {0, 0, 0}, 2) ==
          std::vector<std::int32_t>{0, -1, 0});
}

LAB_PARITY(sample, "shapes that disagree") {
  float v[4] = {};
  std::int32_t i[2];
  const DeviceArray<float> d(std::vector<float>(4, 0.5f));
  const auto out = DeviceArray<std::int32_t>::output(2);
  for (const auto& shape :
       {std::array<std::int64_t, 4>{1, 2, 2, 2}, {2, 2, 2, 1}, {2, 2, 0, 2}}) {
    const std::string on_cpu = message_of([&] {
      cpu::sample({i, {shape[0]}}, {v, {shape[1], shape[2]}}, {v, {shape[3]}});
    });
    CHECK(on_cpu != "");
    CHECK(message_of([&] {
            gpu::sample(out.view({shape[0]}), d.view({shape[1], shape[2]}),
                        d.view({shape[3]}), stream());
          }) == on_cpu);
  }
}
