/// @file
/// The devices, each made in a file of its own. For lib/device only.
#pragma once

#include <memory>

#include "lab/device/device.hpp"

namespace lab {

/// This CPU.
std::unique_ptr<Device> make_cpu_device(Activations activations);
/// The emulator. @throws UnavailableError never
std::unique_ptr<Device> make_simt_device(AttentionKernel attention);
/// The first NVIDIA GPU. @throws UnavailableError if there is none
std::unique_ptr<Device> make_cuda_device(AttentionKernel attention);

}  // namespace lab
