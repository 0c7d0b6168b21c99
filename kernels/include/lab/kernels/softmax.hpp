/// @file
/// Softmax of each row.
#pragma once

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// out[t, i] = exp(x[t, i] - m) / sum_j exp(x[t, j] - m), m the row's maximum, so that no
/// finite input overflows. An entry of -inf gets 0; a row of nothing but -inf, or with +inf
/// or NaN in it, has no softmax and becomes NaN.
/// @param[out] out (T, V); may be x
/// @param[in]  x   (T, V)
/// @throws Error if a shape disagrees
void softmax(HostView<float, 2> out, HostView<const float, 2> x);

namespace reference {
/// The definition: @ref lab::cpu::softmax in plain loops.
void softmax(HostView<float, 2> out, HostView<const float, 2> x);
}  // namespace reference

}  // namespace lab::cpu

LAB_GPU_VERSIONS(void softmax(DeviceView<float, 2> out, DeviceView<const float, 2> x,
                              Stream stream);)
