#include "lab/kernels/add.hpp"

#include "cuda/compat.hpp"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kBlock = 256;

__global__ void add_kernel(float* out, const float* a, const float* b, std::int64_t n) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

}  // namespace

void add(DeviceView<float, 2> out, DeviceView<const float, 2> a,
         DeviceView<const float, 2> b, Stream stream) {
  check_add(out.shape, a.shape, b.shape);
  const std::int64_t n = out.size();
  if (n == 0) return;
  launch(add_kernel, {dim3(unsigned(ceil_div(n, kBlock))), dim3(kBlock), 0, stream},
         out.data, a.data, b.data, n);
}

}  // namespace lab::LAB_GPU
