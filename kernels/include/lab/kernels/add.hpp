/// @file
/// Addition: the residual connection.
#pragma once

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// out = a + b, element by element.
/// @param[out] out (T, D); may be a or b
/// @param[in]  a   (T, D)
/// @param[in]  b   (T, D)
/// @throws Error if a shape disagrees
void add(HostView<float, 2> out, HostView<const float, 2> a, HostView<const float, 2> b);

namespace reference {
/// The definition: @ref lab::cpu::add in plain loops.
void add(HostView<float, 2> out, HostView<const float, 2> a, HostView<const float, 2> b);
}  // namespace reference

}  // namespace lab::cpu

LAB_GPU_VERSIONS(void add(DeviceView<float, 2> out, DeviceView<const float, 2> a,
                          DeviceView<const float, 2> b, Stream stream);)
