/// @file
/// The one header every .cu file includes. Under nvcc it brings the CUDA headers; under the
/// host compiler it brings the emulator, which runs the same source on a CPU.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>
/// The namespace of what a .cu file defines: lab::cuda on a GPU, lab::simt when emulated.
#define LAB_GPU cuda
#else
#include "simt/simt.hpp"
#define LAB_GPU simt
#endif

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "cuda/ptx.hpp"
#include "lab/core/half.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::LAB_GPU {

#ifndef __CUDACC__
// A kernel declares its dynamic shared memory as in any CUDA program:
//   extern __shared__ __align__(16) unsigned char dynamic_smem[];
SIMT_DYNAMIC_SMEM(dynamic_smem)
#endif

/// What stands between the chevrons of a launch, in the same order.
struct Grid {
  dim3 grid, block;
  std::size_t smem = 0;
  cudaStream_t stream = nullptr;
};

/// Throws lab::Error with the runtime's message, and the emulator's report where there is
/// one, unless `code` is success.
/// @param what  what was attempted: "launch of rms_norm"
void check_cuda(cudaError_t code, const char* what);

/// launch(kernel, {grid, block, smem, stream}, args...) is
/// kernel<<<grid, block, smem, stream>>>(args...), with the arguments checked against the
/// kernel's parameters and the launch checked for errors. It does not wait for the kernel.
/// @throws Error if the launch is refused, or (emulated) if the kernel fails
template <class... P, class... A>
void launch(void (*kernel)(P...), const Grid& g, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "wrong number of kernel arguments");
#ifdef __CUDACC__
  kernel<<<g.grid, g.block, g.smem, g.stream>>>(static_cast<P>(std::forward<A>(args))...);
  check_cuda(cudaGetLastError(), "kernel launch");
#else
  check_cuda(::emulator::launch(g.stream, kernel, g.grid, g.block, g.smem,
                                std::forward<A>(args)...),
             "kernel launch");
#endif
}

/// The least n with n * b >= a.
__host__ __device__ constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// A storage type of lab/core/half.hpp as CUDA's own type of the same bits.
template <class T>
struct CudaType {
  using type = T;
};
template <>
struct CudaType<Half> {
  using type = __half;
};
template <>
struct CudaType<BFloat16> {
  using type = __nv_bfloat16;
};
template <class T>
struct CudaType<const T> {
  using type = const typename CudaType<T>::type;
};

/// @return the view's pointer, as the type that a kernel computes with
template <class T, int Rank>
auto cuda_pointer(DeviceView<T, Rank> v) {
  return reinterpret_cast<typename CudaType<T>::type*>(v.data);
}

}  // namespace lab::LAB_GPU
