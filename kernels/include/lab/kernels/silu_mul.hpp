/// @file
/// The gate of a SwiGLU feed-forward layer.
#pragma once

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// out = silu(gate) * up with silu(g) = g / (1 + exp(-g)), element by element.
/// @param[out] out  (T, F); may be gate or up
/// @param[in]  gate (T, F)
/// @param[in]  up   (T, F)
/// @throws Error if a shape disagrees
/// @par Source Shazeer 2020, arXiv:2002.05202
void silu_mul(HostView<float, 2> out, HostView<const float, 2> gate,
              HostView<const float, 2> up);

namespace reference {
/// The definition: @ref lab::cpu::silu_mul in plain loops.
void silu_mul(HostView<float, 2> out, HostView<const float, 2> gate,
              HostView<const float, 2> up);
}  // namespace reference

}  // namespace lab::cpu

LAB_GPU_VERSIONS(void silu_mul(DeviceView<float, 2> out, DeviceView<const float, 2> gate,
                               DeviceView<const float, 2> up, Stream stream);)
