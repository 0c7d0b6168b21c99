#include <algorithm>

#include "cuda/compat.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kBlock = 256;
// Independent chains of multiply-adds: enough to fill the pipeline of one scheduler with 8
// warps (latency 4 cycles, one warp instruction a cycle).
constexpr int kChains = 8;

__global__ void read_kernel(float* sink, const float4* data, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += std::int64_t(gridDim.x) * blockDim.x) {
    const float4 v = data[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 1.5f) *sink = sum;  // never, but the compiler cannot know
}

__global__ void multiply_add_kernel(float* sink, int n, float a, float b) {
  float chain[kChains];
  for (int c = 0; c < kChains; ++c) chain[c] = float(threadIdx.x + c);
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < kChains; ++c) chain[c] = fmaf(chain[c], a, b);
  float sum = 0;
  for (int c = 0; c < kChains; ++c) sum += chain[c];
  if (sum == 1.5f) *sink = sum;
}

/// The time of the fastest of five runs, in seconds.
template <class Work>
double best_seconds(Stream stream, Work&& work) {
  cudaEvent_t start, stop;
  check_cuda(cudaEventCreate(&start), "an event");
  check_cuda(cudaEventCreate(&stop), "an event");
  float best = 0;
  for (int i = 0; i < 6; ++i) {  // the first warms up
    check_cuda(cudaEventRecord(start, stream), "an event");
    work();
    check_cuda(cudaEventRecord(stop, stream), "an event");
    check_cuda(cudaEventSynchronize(stop), "an event");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "an event");
    if (i == 1 || (i > 1 && ms < best)) best = ms;
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return std::max(double(best), 1e-6) * 1e-3;
}

unsigned full_grid() {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "the GPU's properties");
  return unsigned(properties.multiProcessorCount) * 8;
}

}  // namespace

double gpu_read_bandwidth(std::size_t bytes, Stream stream) {
  const std::int64_t n = std::max<std::int64_t>(std::int64_t(bytes / sizeof(float4)), 1);
  const std::size_t size = std::size_t(n) * sizeof(float4);
  std::byte* data = allocate(size + sizeof(float4), stream);
  check_cuda(cudaMemsetAsync(data, 0, size + sizeof(float4), stream), "clearing memory");
  const double s = best_seconds(stream, [&] {
    launch(read_kernel, {dim3(full_grid()), dim3(kBlock), 0, stream},
           reinterpret_cast<float*>(data + size), reinterpret_cast<const float4*>(data), n);
  });
  release(data, stream);
  return double(size) / s;
}

double gpu_flop_peak(int steps, Stream stream) {
  std::byte* sink = allocate(sizeof(float), stream);
  const double s = best_seconds(stream, [&] {
    launch(multiply_add_kernel, {dim3(full_grid()), dim3(kBlock), 0, stream},
           reinterpret_cast<float*>(sink), steps, 0.5f, 0.25f);
  });
  release(sink, stream);
  return 2.0 * kChains * steps * kBlock * full_grid() / s;
}

}  // namespace lab::LAB_GPU
