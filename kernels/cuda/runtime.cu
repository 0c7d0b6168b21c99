#include "cuda/compat.hpp"

namespace lab::LAB_GPU {

void check_cuda(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
#ifdef __CUDACC__
  throw_error(std::string(what) + ": " + cudaGetErrorString(code));
#else
  throw_error(std::string(what) + ": " + cudaGetErrorString(code) + "\n" +
              ::emulator::last_report());
#endif
}

std::string gpu_missing() {
  int n = 0;
  const cudaError_t code = cudaGetDeviceCount(&n);
  if (code == cudaSuccess && n > 0) return "";
  return std::string("no NVIDIA GPU can be used here (") +
         (code == cudaSuccess ? "none found" : cudaGetErrorString(code)) +
         "); --device simt runs the same kernels on this CPU";
}

std::string gpu_name() {
#ifdef __CUDACC__
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "the GPU's properties");
  return properties.name;
#else
  return "simt (CUDA emulated on the CPU)";
#endif
}

std::byte* allocate(std::size_t bytes, Stream stream) {
  std::byte* p = nullptr;
  check_cuda(cudaMallocAsync(&p, bytes, stream), "allocation of device memory");
  return p;
}
void release(std::byte* p, Stream stream) { cudaFreeAsync(p, stream); }

std::byte* allocate_pinned(std::size_t bytes) {
  std::byte* p = nullptr;
  check_cuda(cudaMallocHost(&p, bytes), "allocation of pinned host memory");
  return p;
}
void release_pinned(std::byte* p) { cudaFreeHost(p); }

void copy_to_device(void* device, const void* host, std::size_t bytes, Stream stream) {
  check_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream),
             "copy to the device");
}
void copy_to_host(void* host, const void* device, std::size_t bytes, Stream stream) {
  check_cuda(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream),
             "copy from the device");
}
void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
             "copy on the device");
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a new stream");
  return stream;
}
void destroy_stream(Stream stream) { cudaStreamDestroy(stream); }
void synchronize(Stream stream) {
  check_cuda(cudaStreamSynchronize(stream), "work on the device");
}

void begin_capture(Stream stream) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
             "recording of a graph");
}
GraphExec end_capture(Stream stream) {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), "recording of a graph");
  cudaGraphExec_t exec = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(code, "making a graph executable");
  return exec;
}
void launch_graph(GraphExec graph, Stream stream) {
  check_cuda(cudaGraphLaunch(graph, stream), "launch of a graph");
}
void destroy_graph(GraphExec graph) { cudaGraphExecDestroy(graph); }

}  // namespace lab::LAB_GPU
