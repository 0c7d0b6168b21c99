/// @file
/// Rounding of f32 to a storage type: what appending to a key/value cache does.
#pragma once

#include "lab/core/half.hpp"
#include "lab/core/view.hpp"

namespace lab::cpu {

/// out[i] = in[i] rounded to nearest, ties to even. NaN stays NaN.
/// @tparam To float, Half or BFloat16
/// @param[out] out (n)
/// @param[in]  in  (n)
/// @throws Error if the sizes disagree
template <class To>
void convert(HostView<To, 1> out, HostView<const float, 1> in);

namespace reference {
/// The definition: @ref lab::cpu::convert in plain loops.
template <class To>
void convert(HostView<To, 1> out, HostView<const float, 1> in);
}  // namespace reference

}  // namespace lab::cpu
