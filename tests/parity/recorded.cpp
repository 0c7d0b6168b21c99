// Every operation can be recorded in a graph: it reads nothing back on the host, and what
// it launches does not depend on the values of its inputs.
#include "lab/kernels/add.hpp"
#include "lab/kernels/argmax.hpp"
#include "lab/kernels/kv_append.hpp"
#include "lab/kernels/rms_norm.hpp"
#include "lab/kernels/rope.hpp"
#include "lab/kernels/sample.hpp"
#include "lab/kernels/silu_mul.hpp"
#include "lab/kernels/softmax.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

// Long enough for a row to be divided among blocks.
constexpr std::int64_t kN = 16388;

std::vector<float> numbers(std::uint64_t seed) {
  Rng rng(seed);
  return random_floats(rng, kN);
}

/// Records op(out) over an input of zeros, then gives the input its values and launches the
/// graph twice: the result must be that of a plain call.
template <class T>
void check(std::int64_t size, DeviceArray<float>& input, const std::vector<float>& values,
           const std::function<void(const DeviceArray<T>&)>& op) {
  const auto plain = DeviceArray<T>::output(size);
  const auto recorded = DeviceArray<T>::output(size);
  input.write(values);
  op(plain);
  const std::vector<T> expected = plain.host();
  input.write(std::vector<float>(values.size(), 0.0f));
  gpu::begin_capture(stream());
  op(recorded);
  const GraphExec graph = gpu::end_capture(stream());
  input.write(values);
  for (int i = 0; i < 2; ++i) gpu::launch_graph(graph, stream());
  const std::vector<T> result = recorded.host();
  gpu::destroy_graph(graph);
  REQUIRE(std::memcmp(result.data(), expected.data(), expected.size() * sizeof(T)) == 0);
  REQUIRE(recorded.intact());
}

}  // namespace

LAB_PARITY(add, "recorded in a graph") {
  DeviceArray<float> a(numbers(1)), b(numbers(2));
  check<float>(kN, a, numbers(3), [&](const DeviceArray<float>& out) {
    gpu::add(out.view({1, kN}), a.view({1, kN}), b.view({1, kN}), stream());
  });
}

LAB_PARITY(silu_mul, "recorded in a graph") {
  DeviceArray<float> a(numbers(1)), b(numbers(2));
  check<float>(kN, a, numbers(3), [&](const DeviceArray<float>& out) {
    gpu::silu_mul(out.view({1, kN}), a.view({1, kN}), b.view({1, kN}), stream());
  });
}

LAB_PARITY(rms_norm, "recorded in a graph") {
  DeviceArray<float> x(numbers(1)), weight(numbers(2));
  check<float>(kN, x, numbers(3), [&](const DeviceArray<float>& out) {
    gpu::rms_norm(out.view({1, kN}), x.view({1, kN}), weight.view({kN}), 1e-5f, stream());
  });
}

LAB_PARITY(softmax, "recorded in a graph") {
  DeviceArray<float> x(numbers(1));
  check<float>(kN, x, numbers(2), [&](const DeviceArray<float>& out) {
    gpu::softmax(out.view({1, kN}), x.view({1, kN}), stream());
  });
}

LAB_PARITY(argmax, "recorded in a graph") {
  DeviceArray<float> x(numbers(1));
  check<std::int32_t>(1, x, numbers(2), [&](const DeviceArray<std::int32_t>& out) {
    gpu::argmax(out.view({1}), x.view({1, kN}), stream());
  });
}

LAB_PARITY(sample, "recorded in a graph") {
  DeviceArray<float> p(numbers(1)), u({0.75f});
  std::vector<float> values(std::size_t(kN), 0.0f);
  values[5] = values[kN - 5] = 0.5f;
  check<std::int32_t>(1, p, values, [&](const DeviceArray<std::int32_t>& out) {
    gpu::sample(out.view({1}), p.view({1, kN}), u.view({1}), stream());
  });
}

LAB_PARITY(rope, "recorded in a graph") {
  constexpr std::int64_t kPairs = kN / 2;
  DeviceArray<float> inv_freq(std::vector<float>(kPairs, 1.0f));
  const DeviceArray<std::int32_t> positions({3});
  const auto cos = DeviceArray<float>::output(kPairs),
             sin = DeviceArray<float>::output(kPairs);
  const std::vector<float> some = numbers(2);
  const std::vector<float> values(some.begin(), some.begin() + kPairs);
  check<float>(kN, inv_freq, values, [&](const DeviceArray<float>& x) {
    gpu::rope_angles(cos.view({1, kPairs}), sin.view({1, kPairs}), positions.view({1}),
                     inv_freq.view({kPairs}), stream());
    // Every launch begins with the same x.
    gpu::copy_on_device(x.data(), cos.data(), kPairs * sizeof(float), stream());
    gpu::copy_on_device(x.data() + kPairs, sin.data(), kPairs * sizeof(float), stream());
    gpu::rope(x.view({1, 1, kN}), cos.view({1, kPairs}), sin.view({1, kPairs}),
              RopeLayout::half_split, stream());
  });
}

LAB_PARITY(kv_append, "recorded in a graph") {
  DeviceArray<float> x(numbers(1));
  const DeviceArray<std::int32_t> slots({0});
  check<Half>(kN, x, numbers(2), [&](const DeviceArray<Half>& cache) {
    gpu::kv_append<Half>(cache.view({1, 1, kN}), x.view({1, 1, kN}), slots.view({1}),
                         stream());
  });
}
