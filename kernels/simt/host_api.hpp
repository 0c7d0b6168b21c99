/// @file
/// The part of the CUDA runtime API that the lab uses, for one emulated device. Everything
/// happens at once, in the order of the calls: a stream is a name, except that what is
/// given to a capturing stream is recorded instead of done. Names and meanings are
/// NVIDIA's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "simt/runtime.hpp"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed,
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated,
};
inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1,
                          cudaEventDefault = 0, cudaEventBlockingSync = 1,
                          cudaEventDisableTiming = 2, cudaHostAllocDefault = 0;

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;

inline namespace emulated {
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin,
      sharedMemPerMultiprocessor;
  int warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, multiProcessorCount, major,
      minor, regsPerBlock, l2CacheSize, memoryBusWidth;
};
}  // namespace emulated

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
/// Returns and forgets the last error; cudaPeekAtLastError() keeps it.
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);

cudaError_t cudaFree(void* p);
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream);
cudaError_t cudaFreeHost(void* p);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* p, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes,
                            cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
/// Real time between the two records.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

namespace emulator {

cudaError_t allocate_device(void** p, std::size_t bytes, cudaStream_t stream);
cudaError_t allocate_host(void** p, std::size_t bytes);
/// Does `work` now, or records it if `stream` is being captured.
cudaError_t enqueue(cudaStream_t stream, std::function<cudaError_t()> work);
/// Runs all blocks. @return the error, whose report is last_report()
cudaError_t run(const Launch& launch);
/// Whether kernel argument `index` is null or points into device or pinned memory; if not,
/// that is reported.
bool check_pointer_argument(const void* p, int index, const void* kernel);

/// A kernel with its arguments, which every CUDA thread copies like a GPU's parameter
/// space.
template <class... P>
struct BoundKernel {
  void (*kernel)(P...);
  std::tuple<std::remove_cvref_t<P>...> arguments;

  static void call(const void* self) {
    const auto& bound = *static_cast<const BoundKernel*>(self);
    std::apply(bound.kernel, bound.arguments);
  }
  bool pointers_are_valid() const {
    int index = 0;
    return std::apply(
        [&](const auto&... argument) { return (check_argument(argument, index++) && ...); },
        arguments);
  }

 private:
  template <class T>
  bool check_argument(const T& argument, int index) const {
    if constexpr (std::is_pointer_v<T>)
      return check_pointer_argument((const void*)argument, index, (const void*)kernel);
    else
      return true;
  }
};

/// kernel<<<grid, block, smem, stream>>>(arguments...)
template <class... P, class... A>
cudaError_t launch(cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block,
                   std::size_t smem, A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "wrong number of kernel arguments");
  auto bound = std::make_shared<BoundKernel<P...>>(
      BoundKernel<P...>{kernel, {static_cast<P>(std::forward<A>(arguments))...}});
  return enqueue(stream, [bound, grid, block, smem] {
    if (!bound->pointers_are_valid()) return cudaErrorInvalidValue;
    return run({grid, block, smem, (const void*)bound->kernel, &BoundKernel<P...>::call,
                bound.get(), sizeof *bound});
  });
}
/// The same on the default stream.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t smem,
                   A&&... arguments) {
  return launch(cudaStream_t(nullptr), kernel, grid, block, smem,
                std::forward<A>(arguments)...);
}

}  // namespace emulator

template <class T>
cudaError_t cudaMalloc(T** p, std::size_t bytes) {
  return ::emulator::allocate_device(reinterpret_cast<void**>(p), bytes, nullptr);
}
template <class T>
cudaError_t cudaMallocAsync(T** p, std::size_t bytes, cudaStream_t stream) {
  return ::emulator::allocate_device(reinterpret_cast<void**>(p), bytes, stream);
}
template <class T>
cudaError_t cudaMallocHost(T** p, std::size_t bytes, unsigned = cudaHostAllocDefault) {
  return ::emulator::allocate_host(reinterpret_cast<void**>(p), bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T** p, std::size_t bytes, unsigned flags) {
  return cudaMallocHost(p, bytes, flags);
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute,
                                 int value);
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute,
                                 int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
/// Copies to a __constant__ or __device__ variable.
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes,
                               std::size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
  std::memcpy(reinterpret_cast<char*>(const_cast<std::remove_cv_t<T>*>(&symbol)) + offset,
              from, bytes);
  return cudaSuccess;
}
