#include "lab/device/make_device.hpp"

#include "lab/core/error.hpp"

namespace lab {

const char* device_names() {
#ifdef LAB_HAS_CUDA
  return "cpu|simt|cuda";
#else
  return "cpu|simt";
#endif
}

std::unique_ptr<Device> make_device(const std::string& name, Activations activations,
                                    AttentionKernel attention) {
  if (name == "cpu") return make_cpu_device(activations);
  if (name == "simt") return make_simt_device(attention);
  if (name == "cuda") {
#ifdef LAB_HAS_CUDA
    return make_cuda_device(attention);
#else
    throw UnavailableError(
        "this build has no kernels for a GPU; build the preset cuda where nvcc is, or use "
        "--device simt, which runs the same kernels on this CPU");
#endif
  }
  throw UsageError(fmt::format("unknown device '{}'; give cpu, simt or cuda", name));
}

}  // namespace lab
