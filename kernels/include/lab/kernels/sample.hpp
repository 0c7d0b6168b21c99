/// @file
/// Drawing an index with given probabilities.
#pragma once

#include <bit>
#include <cstdint>

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab {

/// A probability is counted in units of 2^-48. Sums of whole numbers do not depend on the
/// order in which they are taken, so every device draws the same index.
inline constexpr int kProbabilityBits = 48;

/// @return whether p is in [0, 1]; NaN is not
constexpr bool is_probability(float p) { return p >= 0 && p <= 1; }

/// @param p in [0, 1]
/// @return p in units of 2^-48, rounded down
constexpr std::uint64_t probability_units(float p) {
  // p = significand * 2^(exponent - 150); shifts, because a GPU converts to 64 bits slowly.
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(p), exponent = bits >> 23;
  const std::uint64_t significand = (bits & 0x7fffffu) | 0x800000u;
  const std::uint32_t shift = 127 - exponent;
  return shift < 49 ? significand << (kProbabilityBits - 23) >> shift : 0;
}

}  // namespace lab

namespace lab::cpu {

/// out[t] = the first i with p[t, 0] + ... + p[t, i] > u[t]: index i is drawn with
/// probability p[t, i] if u is uniform. If rounding leaves the row's sum at or below u[t],
/// the last index with p > 0.
/// @param[out] out (T)
/// @param[in]  p   (T, V), V >= 1: probabilities, each row's sum 1 but for rounding
/// @param[in]  u   (T), in [0, 1)
/// @throws Error if a shape disagrees, an element of p is not in [0, 1], a row has no
/// positive element or u is not in [0, 1)
/// @par Numerics each p[t, i] is rounded down to a multiple of 2^-48, and the sums are
/// exact: u[t] is within V * 2^-48 of the interval of the index drawn
void sample(HostView<std::int32_t, 1> out, HostView<const float, 2> p,
            HostView<const float, 1> u);

namespace reference {
/// The definition: @ref lab::cpu::sample in plain loops.
void sample(HostView<std::int32_t, 1> out, HostView<const float, 2> p,
            HostView<const float, 1> u);
}  // namespace reference

}  // namespace lab::cpu

// As above, the same index, but a row that the CPU refuses gives -1: a GPU cannot throw.
LAB_GPU_VERSIONS(void sample(DeviceView<std::int32_t, 1> out, DeviceView<const float, 2> p,
                             DeviceView<const float, 1> u, Stream stream);)
