/// @file
/// Rotary position embedding.
#pragma once

#include <cstdint>

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab {

/// Which two elements of a head are rotated together.
enum class RopeLayout {
  interleaved,  ///< (2i, 2i+1): the weights of a GGUF file of a Llama model
  half_split,   ///< (i, i + Dh/2): the weights that transformers publishes
};

}  // namespace lab

namespace lab::cpu {

/// cos[t, i] and sin[t, i] of the angle float(positions[t]) * inv_freq[i], a product
/// rounded to f32.
/// @param[out] cos,sin   (T, Dh/2)
/// @param[in]  positions (T), the token's absolute position
/// @param[in]  inv_freq  (Dh/2), radians per position
/// @throws Error if a shape disagrees
void rope_angles(HostView<float, 2> cos, HostView<float, 2> sin,
                 HostView<const std::int32_t, 1> positions,
                 HostView<const float, 1> inv_freq);

/// Rotates pair i of each head by its token's angle i:
/// (a, b) -> (a * cos - b * sin, a * sin + b * cos).
/// @param[in,out] x      (T, H, Dh), Dh even
/// @param[in]     cos,sin (T, Dh/2), from rope_angles
/// @param[in]     layout which elements are pair i
/// @throws Error if a shape disagrees
/// @par Source Su et al. 2021, arXiv:2104.09864, section 3.4.2
void rope(HostView<float, 3> x, HostView<const float, 2> cos, HostView<const float, 2> sin,
          RopeLayout layout);

namespace reference {
/// The definition: @ref lab::cpu::rope_angles in plain loops.
void rope_angles(HostView<float, 2> cos, HostView<float, 2> sin,
                 HostView<const std::int32_t, 1> positions,
                 HostView<const float, 1> inv_freq);
/// The definition: @ref lab::cpu::rope in plain loops.
void rope(HostView<float, 3> x, HostView<const float, 2> cos, HostView<const float, 2> sin,
          RopeLayout layout);
}  // namespace reference

}  // namespace lab::cpu

LAB_GPU_VERSIONS(void rope_angles(DeviceView<float, 2> cos, DeviceView<float, 2> sin,
                                  DeviceView<const std::int32_t, 1> positions,
                                  DeviceView<const float, 1> inv_freq, Stream stream);
                 void rope(DeviceView<float, 3> x, DeviceView<const float, 2> cos,
                           DeviceView<const float, 2> sin, RopeLayout layout,
                           Stream stream);)
