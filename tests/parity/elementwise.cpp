#include "lab/kernels/add.hpp"
#include "lab/kernels/silu_mul.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

using CpuFunction = void (*)(HostView<float, 2>, HostView<const float, 2>,
                             HostView<const float, 2>);
using GpuFunction = void (*)(DeviceView<float, 2>, DeviceView<const float, 2>,
                             DeviceView<const float, 2>, Stream);
struct Function {
  CpuFunction cpu;
  GpuFunction gpu;
  double relative;
};
constexpr Function kAdd = {cpu::reference::add, gpu::add, 0};
constexpr Function kSiluMul = {cpu::reference::silu_mul, gpu::silu_mul, 1e-6};

/// Compares on (n_tokens, n) elements, into an array of their own and in place of each
/// operand; `skew` takes the first operand off its alignment.
void check(const Function& f, const std::vector<float>& a, const std::vector<float>& b,
           std::int64_t n_tokens, int skew = 0) {
  const std::int64_t size = std::int64_t(a.size()), n = n_tokens ? size / n_tokens : 5;
  std::vector<float> expected(a.size());
  f.cpu({expected.data(), {n_tokens, n}}, view_of(a, {n_tokens, n}),
        view_of(b, {n_tokens, n}));
  const auto close = [&](const DeviceArray<float>& out) {
    LAB_REQUIRE_CLOSE(out, expected, 1e-44, f.relative);
  };
  const DeviceArray<float> da(a, skew), db(b);
  const auto out = DeviceArray<float>::output(size);
  f.gpu(out.view({n_tokens, n}), da.view({n_tokens, n}), db.view({n_tokens, n}), stream());
  close(out);
  auto in_place = DeviceArray<float>::output(a, skew);
  const auto view = in_place.view({n_tokens, n});
  f.gpu(view, view, db.view({n_tokens, n}), stream());
  close(in_place);
  in_place.write(b);
  f.gpu(view, da.view({n_tokens, n}), view, stream());
  close(in_place);
}

void check_sizes(const Function& f) {
  for (const std::int64_t n : {0, 1, 3, 4, 31, 32, 33, 127, 1000, 1025})
    for (const std::int64_t n_tokens : {0, 1, 3})
      for (const int skew : {0, 1}) {
        CAPTURE(n_tokens, n, skew);
        Rng rng(1);
        check(f, random_floats(rng, n_tokens * n, 3), random_floats(rng, n_tokens * n),
              n_tokens, skew);
      }
}

/// Every pair of extreme values.
void check_extremes(const Function& f) {
  const float values[] = {0,          -0.0f,   1,        -1,       88.7f,     -88.7f,
                          89,         -89,     104,      -104,     0x1p-126f, 0x1p-149f,
                          -0x1p-140f, 3.4e38f, -3.4e38f, INFINITY, -INFINITY, NAN};
  std::vector<float> a, b;
  for (const float x : values)
    for (const float y : values) a.push_back(x), b.push_back(y);
  check(f, a, b, 1);
}

void check_message(const Function& f) {
  float v[8];
  const DeviceArray<float> d(std::vector<float>(8, 1.0f));
  const std::string on_cpu = message_of([&] {
    f.cpu({v, {2, 4}}, {v, {2, 4}}, {v, {2, 3}});
  });
  CHECK(on_cpu != "");
  CHECK(message_of([&] {
          f.gpu(d.view({2, 4}), d.view({2, 4}), d.view({2, 3}), stream());
        }) == on_cpu);
}

}  // namespace

LAB_PARITY(add, "odd sizes, in place, off alignment") { check_sizes(kAdd); }
LAB_PARITY(add, "extreme values") { check_extremes(kAdd); }
LAB_PARITY(add, "shapes that disagree") { check_message(kAdd); }
LAB_PARITY(silu_mul, "odd sizes, in place, off alignment") { check_sizes(kSiluMul); }
LAB_PARITY(silu_mul, "extreme values") { check_extremes(kSiluMul); }
LAB_PARITY(silu_mul, "shapes that disagree") { check_message(kSiluMul); }
