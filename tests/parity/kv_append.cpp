#include "lab/kernels/kv_append.hpp"

#include <limits>

#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

/// Ordinary numbers, every exponent, ties, infinities and NaN.
std::vector<float> every_kind_of_float(std::int64_t n) {
  Rng rng(11);
  std::vector<float> v = random_floats(rng, n);
  const float extremes[] = {0,     -0.0f,    INFINITY, -INFINITY,  65504, 65519.996f,
                            65520, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, NAN,   0x1p-149f};
  for (std::size_t i = 0; i < v.size(); ++i)
    if (i % 4 == 1)
      v[i] = extremes[i / 4 % std::size(extremes)];
    else if (i % 4 == 2)
      v[i] = std::bit_cast<float>(std::uint32_t(rng.bits()) &
                                  (i % 8 == 2 ? 0xffff8000u : 0xfffff000u));
  return v;
}

/// The same bits, except that one NaN is as good as another.
template <class KV>
void require_same(const std::vector<KV>& a, const std::vector<KV>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = std::isnan(to_float(a[i])) && std::isnan(to_float(b[i]));
    if (!both_nan && std::memcmp(&a[i], &b[i], sizeof(KV)) != 0)
      FAIL("[" << i << "] is " << to_float(a[i]) << " instead of " << to_float(b[i]));
  }
}

template <class KV>
void check(std::int64_t n_kv_heads, std::int64_t head_dim, int skew) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::int32_t> slots = {4, -1, 0, 8, kLeast, 7};
  const std::int64_t n_tokens = std::int64_t(slots.size()), capacity = 9;
  const std::int64_t row = n_kv_heads * head_dim;
  const auto x = every_kind_of_float(n_tokens * row);
  std::vector<KV> cache(std::size_t(capacity * row), from_float<KV>(7));
  const auto on_device = DeviceArray<KV>::output(cache, skew);
  const DeviceArray<float> dx(x);
  // What the device skips and the CPU refuses: slots beyond the cache.
  auto device_slots = slots;
  device_slots[1] = 9, device_slots[4] = std::numeric_limits<std::int32_t>::max();
  for (const auto& s : {slots, device_slots}) {
    const DeviceArray<std::int32_t> ds(s);
    gpu::kv_append<KV>(on_device.view({capacity, n_kv_heads, head_dim}),
                       dx.view({n_tokens, n_kv_heads, head_dim}), ds.view({n_tokens}),
                       stream());
  }
  cpu::reference::kv_append<KV>({cache.data(), {capacity, n_kv_heads, head_dim}},
                                view_of(x, {n_tokens, n_kv_heads, head_dim}),
                                {slots.data(), {n_tokens}});
  require_same(on_device.host(), cache);
  REQUIRE(on_device.intact());
}

template <class KV>
void check_all() {
  for (const std::int64_t head_dim : {0, 1, 3, 31, 32, 33, 64, 127, 1000})
    for (const std::int64_t n_kv_heads : {1, 2, 3})
      for (const int skew : {0, 1}) {
        if (kTraced && head_dim > 127) continue;
        CAPTURE(head_dim, n_kv_heads, skew);
        check<KV>(n_kv_heads, head_dim, skew);
      }
}

}  // namespace

LAB_PARITY(kv_append, "f32: slots in any order, padding, odd sizes") { check_all<float>(); }
LAB_PARITY(kv_append, "f16: slots in any order, padding, odd sizes") { check_all<Half>(); }
LAB_PARITY(kv_append, "bf16: slots in any order, padding, odd sizes") {
  check_all<BFloat16>();
}

LAB_PARITY(kv_append, "no tokens, and shapes that disagree") {
  float v[8] = {};
  const std::int32_t slots[2] = {};
  const DeviceArray<float> x(std::vector<float>(8, 1.0f));
  const DeviceArray<std::int32_t> ds({0, 0});
  const auto cache = DeviceArray<float>::output(std::vector<float>(8, 7.0f));
  gpu::kv_append<float>(cache.view({4, 1, 2}), x.view({0, 1, 2}), ds.view({0}), stream());
  LAB_REQUIRE_CLOSE(cache, std::vector<float>(8, 7.0f), 0, 0);
  for (const auto& [n_kv_heads, n_slots] :
       {std::pair<std::int64_t, std::int64_t>{2, 2}, {1, 1}}) {
    const std::string on_cpu = message_of([&, k = n_kv_heads, n = n_slots] {
      cpu::kv_append<float>({v, {4, k, 2 / k}}, {v, {2, 1, 2}}, {slots, {n}});
    });
    CHECK(on_cpu != "");
    CHECK(message_of([&, k = n_kv_heads, n = n_slots] {
            gpu::kv_append<float>(cache.view({4, k, 2 / k}), x.view({2, 1, 2}),
                                  ds.view({n}), stream());
          }) == on_cpu);
  }
}
