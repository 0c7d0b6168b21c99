/// @file
/// Storing keys and values in a cache, rounded to the cache's type.
#pragma once

#include <cstdint>

#include "lab/core/half.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// cache[slots[t]] = x[t], rounded to nearest, ties to even; NaN stays NaN. A negative slot
/// is skipped: its token is padding. (The slot mapping of vLLM.)
/// @tparam KV float, Half or BFloat16
/// @param[out] cache (S, K, Dh)
/// @param[in]  x     (T, K, Dh)
/// @param[in]  slots (T), each a row of the cache and no two the same
/// @throws Error if a shape disagrees or a slot is beyond the cache
template <class KV>
void kv_append(HostView<KV, 3> cache, HostView<const float, 3> x,
               HostView<const std::int32_t, 1> slots);

namespace reference {
/// The definition: @ref lab::cpu::kv_append in plain loops.
template <class KV>
void kv_append(HostView<KV, 3> cache, HostView<const float, 3> x,
               HostView<const std::int32_t, 1> slots);
}  // namespace reference

}  // namespace lab::cpu

// As above, but a slot beyond the cache is skipped: a GPU cannot throw.
LAB_GPU_VERSIONS(template <class KV>
                 void kv_append(DeviceView<KV, 3> cache, DeviceView<const float, 3> x,
                                DeviceView<const std::int32_t, 1> slots, Stream stream);)
