/// @file
/// The devices, each made in a file of its own. For lib/device only.
#pragma once

#include <memory>

#include "lab/device/device.hpp"

namespace lab {

std::unique_ptr<Device> make_cpu_device(Activations activations);

namespace simt {
std::unique_ptr<Device> make_gpu_device();
}
namespace cuda {
std::unique_ptr<Device> make_gpu_device();
}

}  // namespace lab
