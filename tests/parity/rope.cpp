#include "lab/kernels/rope.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::vector<float> frequencies(std::int64_t pairs) {
  std::vector<float> f;
  for (std::int64_t i = 0; i < pairs; ++i)
    f.push_back(float(std::pow(10000.0, -double(i) / double(pairs))));
  return f;
}

void check_rope(std::int64_t n_tokens, std::int64_t n_heads, std::int64_t head_dim,
                RopeLayout layout, int skew) {
  const std::int64_t pairs = head_dim / 2;
  Rng rng(10);
  auto x = random_floats(rng, n_tokens * n_heads * head_dim);
  std::vector<float> cos, sin;
  for (std::int64_t i = 0; i < n_tokens * pairs; ++i) {
    const double angle = 6 * rng.normal();
    cos.push_back(float(std::cos(angle)));
    sin.push_back(float(std::sin(angle)));
  }
  const auto on_device = DeviceArray<float>::output(x, skew);
  const DeviceArray<float> dc(cos), ds(sin);
  gpu::rope(on_device.view({n_tokens, n_heads, head_dim}), dc.view({n_tokens, pairs}),
            ds.view({n_tokens, pairs}), layout, stream());
  cpu::reference::rope({x.data(), {n_tokens, n_heads, head_dim}},
                       view_of(cos, {n_tokens, pairs}), view_of(sin, {n_tokens, pairs}),
                       layout);
  LAB_REQUIRE_CLOSE(on_device, x, 2e-6, 1e-6);
}

}  // namespace

LAB_PARITY(rope, "angles: near and far positions, odd sizes") {
  const std::vector<std::int32_t> positions = {0,    1,      2,       31,        1000,
                                               8191, 131071, 1 << 24, 2147483647};
  const std::int64_t n_tokens = std::int64_t(positions.size());
  for (const std::int64_t pairs : {0, 1, 3, 16, 31, 32, 33, 127}) {
    CAPTURE(pairs);
    const auto inv_freq = frequencies(pairs);
    std::vector<float> cos(std::size_t(n_tokens * pairs)), sin(cos);
    cpu::reference::rope_angles({cos.data(), {n_tokens, pairs}},
                                {sin.data(), {n_tokens, pairs}},
                                {positions.data(), {n_tokens}}, view_of(inv_freq, {pairs}));
    const DeviceArray<std::int32_t> dp(positions);
    const DeviceArray<float> df(inv_freq);
    const auto dc = DeviceArray<float>::output(n_tokens * pairs),
               ds = DeviceArray<float>::output(n_tokens * pairs);
    gpu::rope_angles(dc.view({n_tokens, pairs}), ds.view({n_tokens, pairs}),
                     dp.view({n_tokens}), df.view({pairs}), stream());
    // The angle's whole turns leave an error of 2^-53 of the angle, 3e-7 for the largest.
    LAB_REQUIRE_CLOSE(dc, cos, 5e-7, 0);
    LAB_REQUIRE_CLOSE(ds, sin, 5e-7, 0);
  }
}

LAB_PARITY(rope, "both layouts, odd sizes, off alignment") {
  for (const RopeLayout layout : {RopeLayout::interleaved, RopeLayout::half_split})
    for (const std::int64_t head_dim : {2, 4, 6, 8, 12, 62, 64, 66, 128})
      for (const std::int64_t n_heads : {0, 1, 3, 9})
        for (const std::int64_t n_tokens : {0, 1, 3})
          for (const int skew : {0, 1}) {
            if (kTraced && skew + n_tokens > 3) continue;
            CAPTURE(int(layout), head_dim, n_heads, n_tokens, skew);
            check_rope(n_tokens, n_heads, head_dim, layout, skew);
          }
}

LAB_PARITY(rope, "infinities and NaN stay in their pair") {
  for (const RopeLayout layout : {RopeLayout::interleaved, RopeLayout::half_split}) {
    std::vector<float> x(16, 1.0f);
    x[3] = INFINITY, x[9] = NAN;
    const std::vector<float> cos(4, 0.6f), sin(4, 0.8f);
    const auto on_device = DeviceArray<float>::output(x);
    const DeviceArray<float> dc(cos), ds(sin);
    gpu::rope(on_device.view({1, 2, 8}), dc.view({1, 4}), ds.view({1, 4}), layout,
              stream());
    cpu::reference::rope({x.data(), {1, 2, 8}}, view_of(cos, {1, 4}), view_of(sin, {1, 4}),
                         layout);
    LAB_REQUIRE_CLOSE(on_device, x, 1e-6, 1e-6);
  }
}

LAB_PARITY(rope, "shapes that disagree") {
  float v[12] = {};
  const std::int32_t positions[2] = {};
  const DeviceArray<float> d(std::vector<float>(12, 1.0f));
  const DeviceArray<std::int32_t> dp({0, 0});
  const auto layout = RopeLayout::interleaved;
  for (const std::int64_t head_dim : {3, 6}) {
    const std::string on_cpu = message_of([&] {
      cpu::rope({v, {2, 1, head_dim}}, {v, {2, 2}}, {v, {2, 2}}, layout);
    });
    CHECK(on_cpu != "");
    CHECK(message_of([&] {
            gpu::rope(d.view({2, 1, head_dim}), d.view({2, 2}), d.view({2, 2}), layout,
                      stream());
          }) == on_cpu);
  }
  const std::string on_cpu = message_of([&] {
    cpu::rope_angles({v, {2, 2}}, {v, {2, 2}}, {positions, {2}}, {v, {3}});
  });
  CHECK(on_cpu != "");
  CHECK(message_of([&] {
          gpu::rope_angles(d.view({2, 2}), d.view({2, 2}), dp.view({2}), d.view({3}),
                           stream());
        }) == on_cpu);
}
