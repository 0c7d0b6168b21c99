/// @file
/// Root-mean-square normalisation.
#pragma once

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// out[t, d] = weight[d] * x[t, d] / sqrt(mean_d(x[t, :]^2) + eps)
/// @param[out] out    (T, D); may be x
/// @param[in]  x      (T, D)
/// @param[in]  weight (D)
/// @param[in]  eps    added under the root
/// @throws Error if a shape disagrees
/// @par Source Zhang and Sennrich 2019, arXiv:1910.07467
void rms_norm(HostView<float, 2> out, HostView<const float, 2> x,
              HostView<const float, 1> weight, float eps);

namespace reference {
/// The definition: @ref lab::cpu::rms_norm in plain loops.
void rms_norm(HostView<float, 2> out, HostView<const float, 2> x,
              HostView<const float, 1> weight, float eps);
}  // namespace reference

}  // namespace lab::cpu

LAB_GPU_VERSIONS(void rms_norm(DeviceView<float, 2> out, DeviceView<const float, 2> x,
                               DeviceView<const float, 1> weight, float eps,
                               Stream stream);)
