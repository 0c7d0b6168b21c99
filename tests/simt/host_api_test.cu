// Memory, streams, events and graphs of the host API.
#include <cmath>
#include <cstring>
#include <thread>

#include "support.hpp"

namespace {

__global__ void add_kernel(int* x, int n, int v) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] += v;
}

TEST_CASE("simt: device memory is allocated, filled, copied and freed") {
  int* p = nullptr;
  REQUIRE(cudaMalloc(&p, 40) == cudaSuccess);
  REQUIRE(cudaMemset(p, 1, 40) == cudaSuccess);
  int host[10];
  REQUIRE(cudaMemcpy(host, p, 40, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(host[9] == 0x01010101);
  int* q = nullptr;
  REQUIRE(cudaMallocAsync(&q, 40, nullptr) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(q, p, 40, cudaMemcpyDeviceToDevice, nullptr) == cudaSuccess);
  REQUIRE(cudaMemcpy(host, q + 4, 4, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaFreeAsync(q, nullptr) == cudaSuccess);
  CHECK(cudaFree(p) == cudaSuccess);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(cudaFree(p) == cudaErrorInvalidValue);  // a second time
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  int* empty = nullptr;
  CHECK(cudaMalloc(&empty, 0) == cudaSuccess);
  CHECK(cudaFree(empty) == cudaSuccess);
}

TEST_CASE("simt: copies are checked") {
  DeviceArray<int> x(10);
  int host[11] = {};
  CHECK(cudaMemcpy(x.data(), host, 40, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK_THAT(
      emulator::last_report(),
      ContainsSubstring("from host to device memory; the kind says from device to host"));
  CHECK(cudaMemcpy(x.data(), host, 44, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK_THAT(emulator::last_report(), ContainsSubstring("44 bytes leaves the allocation"));
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
  CHECK(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
  cudaGetLastError();
}

TEST_CASE("simt: pinned host memory may be used by a kernel") {
  int* p = nullptr;
  REQUIRE(cudaMallocHost(&p, 4 * sizeof(int)) == cudaSuccess);
  std::memset(p, 0, 4 * sizeof(int));
  run(add_kernel, {1, 32}, p, 4, 5);
  CHECK(p[3] == 5);
  CHECK(cudaFreeHost(p) == cudaSuccess);
  CHECK(cudaFreeHost(p) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("simt: the device describes itself") {
  int n = 0, value = 0;
  cudaDeviceProp p;
  CHECK(cudaGetDeviceCount(&n) == cudaSuccess);
  CHECK(n == 1);
  REQUIRE(cudaGetDeviceProperties(&p, 0) == cudaSuccess);
  CHECK(p.warpSize == 32);
  CHECK(p.major == 8);
  CHECK(cudaGetDeviceProperties(&p, 1) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) ==
        cudaSuccess);
  CHECK(value == 163 * 1024);
  std::size_t free_bytes = 0, total = 0, less = 0;
  cudaMemGetInfo(&free_bytes, &total);
  DeviceArray<char> some(1000);
  cudaMemGetInfo(&less, &total);
  CHECK(less == free_bytes - 1000);
  cudaGetLastError();
}

TEST_CASE("simt: events measure real time") {
  cudaEvent_t start, end, never;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  cudaEventCreate(&never);
  cudaEventRecord(start, nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  cudaEventRecord(end, nullptr);
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaSuccess);
  CHECK(ms >= 3.0f);
  CHECK(cudaEventElapsedTime(&ms, start, never) == cudaErrorInvalidResourceHandle);
  for (cudaEvent_t e : {start, end, never}) cudaEventDestroy(e);
  cudaGetLastError();
}

TEST_CASE("simt: what a capturing stream is given runs at each launch of the graph") {
  cudaStream_t stream, other;
  cudaStreamCreate(&stream);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  DeviceArray<int> x(std::vector<int>{1, 2, 3});
  int host[3] = {9, 9, 9};
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(stream, &status);
  CHECK(status == cudaStreamCaptureStatusActive);
  int* temporary = nullptr;
  REQUIRE(cudaMallocAsync(&temporary, 12, stream) == cudaSuccess);
  REQUIRE(emulator::launch(stream, add_kernel, 1, 32, 0, x.data(), 3, 10) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(temporary, x.data(), 12, cudaMemcpyDeviceToDevice, stream) ==
          cudaSuccess);
  REQUIRE(cudaMemcpyAsync(host, temporary, 12, cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
  REQUIRE(cudaFreeAsync(temporary, stream) == cudaSuccess);
  run(add_kernel, {1, 32}, x.data(), 3, 1);  // another stream: now
  CHECK(x.host() == std::vector<int>{2, 3, 4});
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(host[0] == 9);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  for (int i = 1; i <= 3; ++i) {
    REQUIRE(cudaGraphLaunch(exec, other) == cudaSuccess);
    CHECK(host[2] == 4 + 10 * i);
  }
  CHECK(cudaStreamSynchronize(other) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaFree(temporary) == cudaErrorInvalidValue);  // freed with the graph
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
  cudaGetLastError();
}

TEST_CASE("simt: streams join a capture through events") {
  cudaStream_t a, b;
  cudaStreamCreate(&a);
  cudaStreamCreate(&b);
  cudaEvent_t fork;
  cudaEventCreate(&fork);
  DeviceArray<int> x(std::vector<int>{0});
  cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed);
  cudaEventRecord(fork, a);
  cudaStreamWaitEvent(b, fork);
  REQUIRE(emulator::launch(b, add_kernel, 1, 1, 0, x.data(), 1, 4) == cudaSuccess);
  CHECK(x.host()[0] == 0);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(b, &graph) == cudaErrorInvalidValue);  // begun on a
  REQUIRE(cudaStreamEndCapture(a, &graph) == cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, a);
  CHECK(x.host()[0] == 4);
  REQUIRE(emulator::launch(b, add_kernel, 1, 1, 0, x.data(), 1, 1) == cudaSuccess);
  CHECK(x.host()[0] == 5);  // b is done with the capture as well
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaEventDestroy(fork);
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
  cudaGetLastError();
}

TEST_CASE("simt: waiting for a capturing stream spoils the capture") {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) ==
        cudaErrorStreamCaptureUnsupported);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK_THAT(emulator::last_report(), ContainsSubstring("cudaStreamSynchronize"));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaStreamDestroy(stream);
  cudaGetLastError();
}

TEST_CASE("simt: a failing node ends the graph's launch") {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  DeviceArray<int> x(std::vector<int>{0});
  int on_host = 0;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  CHECK(emulator::launch(stream, add_kernel, 1, 1, 0, &on_host, 1, 1) == cudaSuccess);
  CHECK(emulator::launch(stream, add_kernel, 1, 1, 0, x.data(), 1, 1) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  CHECK(cudaGraphLaunch(exec, stream) == cudaErrorInvalidValue);
  CHECK_THAT(emulator::last_report(), ContainsSubstring("host pointer"));
  CHECK(x.host()[0] == 0);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaGetLastError();
}

__constant__ float table[4];
__global__ void constant_kernel(float* out) { out[threadIdx.x] = table[threadIdx.x]; }
TEST_CASE("simt: constant memory") {
  const float values[] = {1, 2, 3};
  REQUIRE(cudaMemcpyToSymbol(table, values, sizeof values, sizeof(float)) == cudaSuccess);
  CHECK(cudaMemcpyToSymbol(table, values, sizeof values, 8) == cudaErrorInvalidValue);
  DeviceArray<float> out(4);
  run(constant_kernel, {1, 4}, out.data());
  CHECK(out.host() == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("simt: host threads may launch at the same time") {
  DeviceArray<int> a(std::vector<int>(100, 0)), b(std::vector<int>(100, 0));
  const auto work = [](int* x) {
    for (int i = 0; i < 50; ++i) emulator::launch(add_kernel, 4, 32, 0, x, 100, 1);
  };
  std::thread other(work, b.data());
  work(a.data());
  other.join();
  CHECK(a.host() == std::vector<int>(100, 50));
  CHECK(b.host() == std::vector<int>(100, 50));
}

}  // namespace
