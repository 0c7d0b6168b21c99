#include "bridge.hpp"

#include <exercise.cu>

namespace bridge {
namespace {

using exercise::launch;

// The sums that a task gets where an earlier task's would be needed. They are right and
// slow.
struct SuppliedWarpSum {
  __device__ float operator()(float value) const {
    float sum = 0;
    for (int lane = 0; lane < 32; ++lane) sum += __shfl_sync(0xffffffffu, value, lane);
    return sum;
  }
};
struct SuppliedBlockSum {
  __device__ float operator()(float value) const {
    __shared__ float all[1024];
    all[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0)
      for (unsigned i = 1; i < blockDim.x; ++i) all[0] += all[i];
    __syncthreads();
    const float sum = all[0];
    __syncthreads();
    return sum;
  }
};
struct OwnWarpSum {
  __device__ float operator()(float value) const { return exercise::warp_sum(value); }
};
template <class WarpSum>
struct OwnBlockSum {
  __device__ float operator()(float value) const {
    return exercise::block_sum(value, WarpSum());
  }
};

template <class Sum>
__global__ void sum_kernel(float* out, const float* in, Sum sum) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = sum(in[i]);
}

template <class Sum>
__global__ void sum_twice_kernel(float* out, const float* in, Sum sum) {
  const float first = sum(in[threadIdx.x]), second = sum(in[blockDim.x + threadIdx.x]);
  out[threadIdx.x] = first + 1000 * second;
}

}  // namespace

void add(float* out, const float* a, const float* b, std::int64_t n) {
  exercise::add(out, a, b, n);
}

void warp_sum(float* out, const float* in, int n_blocks, int n_threads) {
  launch(sum_kernel<OwnWarpSum>, {dim3(unsigned(n_blocks)), dim3(unsigned(n_threads))}, out,
         in, OwnWarpSum());
}

void block_sum(float* out, const float* in, int n_blocks, int n_threads, bool own) {
  const lab::LAB_GPU::Grid shape{dim3(unsigned(n_blocks)), dim3(unsigned(n_threads))};
  if (own)
    launch(sum_kernel<OwnBlockSum<OwnWarpSum>>, shape, out, in, OwnBlockSum<OwnWarpSum>());
  else
    launch(sum_kernel<OwnBlockSum<SuppliedWarpSum>>, shape, out, in,
           OwnBlockSum<SuppliedWarpSum>());
}

void block_sum_twice(float* out, const float* in, int n_threads) {
  launch(sum_twice_kernel<OwnBlockSum<SuppliedWarpSum>>,
         {dim3(1), dim3(unsigned(n_threads))}, out, in, OwnBlockSum<SuppliedWarpSum>());
}

void rms_norm(float* out, const float* x, const float* weight, int n_rows, int width,
              float eps, bool own) {
  if (own)
    exercise::rms_norm(out, x, weight, n_rows, width, eps, OwnBlockSum<OwnWarpSum>());
  else
    exercise::rms_norm(out, x, weight, n_rows, width, eps, SuppliedBlockSum());
}

}  // namespace bridge
