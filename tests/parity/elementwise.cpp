#include "lab/kernels/add.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

constexpr std::int64_t kWidths[] = {0, 1, 3, 4, 31, 32, 33, 127, 1000, 1025};

}  // namespace

LAB_PARITY(add, "odd sizes, in place and off alignment") {
  for (const std::int64_t d : kWidths)
    for (const std::int64_t t : {0, 1, 3})
      for (const int skew : {0, 1}) {
        CAPTURE(t, d, skew);
        Rng rng(1);
        const auto a = random_floats(rng, t * d), b = random_floats(rng, t * d);
        std::vector<float> expected(a.size());
        cpu::reference::add({expected.data(), {t, d}}, view_of(a, {t, d}),
                            view_of(b, {t, d}));
        const DeviceArray<float> da(a, skew), db(b);
        auto out = DeviceArray<float>::output(t * d);
        gpu::add(out.view({t, d}), da.view({t, d}), db.view({t, d}), stream());
        LAB_REQUIRE_CLOSE(out, expected, 0, 0);
        auto in_place = DeviceArray<float>::output(a, skew);
        gpu::add(in_place.view({t, d}), in_place.view({t, d}), db.view({t, d}), stream());
        LAB_REQUIRE_CLOSE(in_place, expected, 0, 0);
        in_place.write(b);
        gpu::add(in_place.view({t, d}), da.view({t, d}), in_place.view({t, d}), stream());
        LAB_REQUIRE_CLOSE(in_place, expected, 0, 0);
      }
}
