#include "lab/kernels/kv_append.hpp"

#include <algorithm>

#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {
namespace {

void round_elements(float* out, const float* in, std::int64_t n) {
  std::copy_n(in, n, out);
}
void round_elements(Half* out, const float* in, std::int64_t n) {
  kernels().to_half(out, in, n);
}
void round_elements(BFloat16* out, const float* in, std::int64_t n) {
  kernels().to_bfloat16(out, in, n);
}

}  // namespace

// [region definition]
template <class KV>
void reference::kv_append(HostView<KV, 3> cache, HostView<const float, 3> x,
                          HostView<const std::int32_t, 1> slots) {
  check_kv_append(cache.shape, x.shape, slots.shape);
  check_slots(slots, cache.shape[0]);
  const std::int64_t row = x.shape[1] * x.shape[2];
  for (std::int64_t t = 0; t < x.shape[0]; ++t)
    for (std::int64_t i = 0; slots[t] >= 0 && i < row; ++i)
      cache.data[slots[t] * row + i] = from_float<KV>(x.data[t * row + i]);
}
// [endregion]

template <class KV>
void kv_append(HostView<KV, 3> cache, HostView<const float, 3> x,
               HostView<const std::int32_t, 1> slots) {
  check_kv_append(cache.shape, x.shape, slots.shape);
  check_slots(slots, cache.shape[0]);
  const std::int64_t row = x.shape[1] * x.shape[2];
  const std::int64_t grain =
      std::max<std::int64_t>(1, kElementsPerTask / std::max<std::int64_t>(1, row));
  parallel_for(x.shape[0], grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      if (slots[t] >= 0) round_elements(cache.data + slots[t] * row, x.data + t * row, row);
  });
}

#define LAB_INSTANTIATE(KV)                                                         \
  template void kv_append<KV>(HostView<KV, 3>, HostView<const float, 3>,            \
                              HostView<const std::int32_t, 1>);                     \
  template void reference::kv_append<KV>(HostView<KV, 3>, HostView<const float, 3>, \
                                         HostView<const std::int32_t, 1>);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::cpu
