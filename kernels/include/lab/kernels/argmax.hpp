/// @file
/// The index of each row's largest element.
#pragma once

#include <cstdint>

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// out[t] = the first i with x[t, i] = max_j x[t, j].
/// @param[out] out (T)
/// @param[in]  x   (T, V), V >= 1
/// @throws Error if a shape disagrees or a row holds NaN
void argmax(HostView<std::int32_t, 1> out, HostView<const float, 2> x);

namespace reference {
/// The definition: @ref lab::cpu::argmax in plain loops.
void argmax(HostView<std::int32_t, 1> out, HostView<const float, 2> x);
}  // namespace reference

}  // namespace lab::cpu

// As above, but a row with NaN gives -1: a GPU cannot throw.
LAB_GPU_VERSIONS(void argmax(DeviceView<std::int32_t, 1> out, DeviceView<const float, 2> x,
                             Stream stream);)
