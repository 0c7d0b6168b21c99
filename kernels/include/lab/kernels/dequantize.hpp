/// @file
/// Decoding of every weight format to f32.
#pragma once

#include <cstddef>

#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// Decodes consecutive blocks. Every operation rounds to f32 on its own, so results are the
/// same bits on every machine.
/// @param[out] out    (n), n a multiple of the format's block size
/// @param[in]  dtype  the format; layouts: kernels/cpu/dequantize.cpp
/// @param[in]  blocks row_bytes(dtype, n) bytes, at any alignment
/// @throws Error if n is not whole blocks
/// @par Source GGUF v3; the block formats of ggml (ggml-common.h)
void dequantize(HostView<float, 1> out, DType dtype, const std::byte* blocks);

namespace reference {
/// The definition: @ref lab::cpu::dequantize on one thread.
void dequantize(HostView<float, 1> out, DType dtype, const std::byte* blocks);
}  // namespace reference

}  // namespace lab::cpu

// `blocks` is device memory, as it lies in a file. The same bits as on the CPU.
LAB_GPU_VERSIONS(void dequantize(DeviceView<float, 1> out, DType dtype,
                                 const std::byte* blocks, Stream stream);)
