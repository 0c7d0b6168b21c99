#include "lab/kernels/convert.hpp"
#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

template <class To>
void check_type() {
  Rng rng(17);
  // Every exponent, and ties: the low half of the bits is 0, 1/2 or random.
  std::vector<float> in = {0,     -0.0f,    INFINITY, -INFINITY,  65504, 65519.996f,
                           65520, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, NAN};
  while (in.size() < 70001) {
    std::uint32_t u = std::uint32_t(rng.bits());
    if (in.size() % 3 == 0) u &= 0xffff8000u;
    if (in.size() % 3 == 1) u &= 0xfffff000u;
    in.push_back(std::bit_cast<float>(u));
  }
  for (const std::int64_t n : {0, 1, 15, 31, 33, 127, 1025, 70001}) {
    const auto check = [&](const auto& f) {
      Guarded<To> out(n);
      f(out.view({n}), view_of(in, {n}));
      for (std::int64_t i = 0; i < n; ++i) {
        const float v = in[std::size_t(i)];
        if (std::isnan(v))
          REQUIRE(std::isnan(to_float(out[i])));
        else if (const To right = from_float<To>(v);
                 std::memcmp(&right, &out[i], sizeof right) != 0)
          FAIL(v << " became " << to_float(out[i]));
      }
      REQUIRE(out.intact());
    };
    check(cpu::reference::convert<To>);
    each_instruction_set([&] { check(cpu::convert<To>); });
  }
  To one[1];
  CHECK(message_of([&] {
          cpu::convert<To>({one, {1}}, view_of(in, {2}));
        }) == "convert: out has 1 elements but in has 2");
  CHECK(message_of([&] {
          cpu::reference::convert<To>({one, {1}}, view_of(in, {2}));
        }) == "convert: out has 1 elements but in has 2");
}

}  // namespace

TEST_CASE("convert rounds to nearest even, exactly as the scalar conversion") {
  check_type<float>();
  check_type<Half>();
  check_type<BFloat16>();
}
