/// @file
/// Embedding: one row of the table for each token id.
#pragma once

#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"
#include "lab/kernels/linear.hpp"

namespace lab::cpu {

/// out[t, :] = table[ids[t], :], decoded to f32.
/// @param[out] out   (T, D)
/// @param[in]  ids   (T) in [0, V)
/// @param[in]  table (V, D), any format
/// @throws Error if a shape disagrees or an id is not a row of the table
void embedding(HostView<float, 2> out, HostView<const std::int32_t, 1> ids,
               HostWeightView table);

namespace reference {
/// The definition: @ref lab::cpu::embedding in plain loops.
void embedding(HostView<float, 2> out, HostView<const std::int32_t, 1> ids,
               HostWeightView table);
}  // namespace reference

}  // namespace lab::cpu

// On a GPU the table is a Linear, so that a model whose output layer is its embedding holds
// the weights once. The ids are in device memory, where they cannot be checked: an id that
// is not a row of the table gives a row of NaN.
LAB_GPU_VERSIONS(void embedding(DeviceView<float, 2> out,
                                DeviceView<const std::int32_t, 1> ids, const Linear& table,
                                Stream stream);)
