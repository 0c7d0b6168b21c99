// Copies, streams, events, graphs and what the device says about itself.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "simt/heap.hpp"
#include "simt/report.hpp"
#include "simt/tracer.hpp"

using namespace emulator;
using Work = std::function<cudaError_t()>;

struct CUgraph_st {
  std::vector<Work> nodes;
  std::vector<void*> to_free;  // memory whose free was recorded
};
struct CUgraphExec_st {
  std::shared_ptr<CUgraph_st> graph;
};
/// What several streams record into, if one waits for an event of another.
struct Capture {
  std::shared_ptr<CUgraph_st> graph = std::make_shared<CUgraph_st>();
  CUstream_st* origin = nullptr;
  bool invalid = false, ended = false;
};
struct CUstream_st {
  std::shared_ptr<Capture> capture;
};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
  bool timed = true;
  std::shared_ptr<Capture> capture;
};

namespace {

bool is_capturing(cudaStream_t s) { return s && s->capture && !s->capture->ended; }

/// Waiting for a stream that only records can never end.
cudaError_t forbid_while_capturing(cudaStream_t s, const char* function) {
  if (!is_capturing(s)) return cudaSuccess;
  s->capture->invalid = true;
  return refuse(
      cudaErrorStreamCaptureUnsupported, "stream capture",
      std::string(function) + " cannot be used on a stream that is being captured");
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  const bool to_device = is_device_pointer(to), from_device = is_device_pointer(from);
  const bool want_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool want_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const char* const space[] = {"host", "device"};
  if (kind != cudaMemcpyDefault && (to_device != want_to || from_device != want_from))
    return refuse(cudaErrorInvalidValue, "wrong direction of a copy",
                  std::string("cudaMemcpy from ") + space[from_device] + " to " +
                      space[to_device] + " memory; the kind says from " + space[want_from] +
                      " to " + space[want_to]);
  if ((to_device && !is_device_range(to, bytes)) ||
      (from_device && !is_device_range(from, bytes)))
    return refuse(cudaErrorInvalidValue, "copy out of bounds",
                  "cudaMemcpy of " + std::to_string(bytes) +
                      " bytes leaves the allocation of device memory");
  std::memmove(to, from, bytes);
  if (Tracer* t = tracer(); t && to_device) t->host_write(to, bytes, true);
  return cudaSuccess;
}

cudaError_t fill(void* p, int value, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!is_device_range(p, bytes))
    return refuse(
        cudaErrorInvalidValue, "fill out of bounds",
        "cudaMemset of " + std::to_string(bytes) + " bytes does not lie in device memory");
  std::memset(p, value, bytes);
  if (Tracer* t = tracer()) t->host_write(p, bytes, true);
  return cudaSuccess;
}

}  // namespace

cudaError_t emulator::enqueue(cudaStream_t stream, Work work) {
  if (!is_capturing(stream)) return work();
  stream->capture->graph->nodes.push_back(std::move(work));
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaFree(void* p) {
  if (!p || free_device(p)) return cudaSuccess;
  return refuse(
      cudaErrorInvalidValue, "wrong free",
      "cudaFree of an address that cudaMalloc has not returned, or a second time");
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  if (!is_capturing(stream)) return cudaFree(p);
  stream->capture->graph->to_free.push_back(p);  // the graph's nodes use it at every launch
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return enqueue(stream, [=] { return copy(to, from, bytes, kind); });
}
cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  return fill(p, value, bytes);
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { return fill(p, value, bytes); });
}

// ---- streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return forbid_while_capturing(stream, "cudaStreamSynchronize");
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return forbid_while_capturing(stream, "cudaStreamQuery");
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (stream && event->capture && !is_capturing(stream)) stream->capture = event->capture;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->timed = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (is_capturing(stream)) {
    event->capture = stream->capture;
    return cudaSuccess;
  }
  event->time = std::chrono::steady_clock::now();
  event->recorded = true;
  event->capture = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start->recorded || !end->recorded || !start->timed || !end->timed)
    return refuse(cudaErrorInvalidResourceHandle, "event",
                  "cudaEventElapsedTime of an event that has not been recorded, or without "
                  "timing");
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

// ---- graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || is_capturing(stream))
    return refuse(cudaErrorStreamCaptureUnsupported, "stream capture",
                  stream
                      ? "the stream is being captured already"
                      : "the default stream cannot be captured; expected a stream of your "
                        "own");
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!is_capturing(stream) || stream->capture->origin != stream)
    return refuse(cudaErrorInvalidValue, "stream capture",
                  "cudaStreamEndCapture of a stream on which no capture was begun");
  const std::shared_ptr<Capture> capture = std::move(stream->capture);
  stream->capture = nullptr;
  capture->ended = true;  // for the streams that have joined
  if (capture->invalid) return set_error(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st(*capture->graph);
  capture->graph->to_free.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = !is_capturing(stream)      ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long) {
  if (!graph)
    return refuse(cudaErrorInvalidValue, "graph", "cudaGraphInstantiate of no graph");
  *exec = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph)};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return enqueue(stream, [graph = exec->graph] {
    for (const Work& node : graph->nodes)
      if (const cudaError_t error = node(); error != cudaSuccess) return error;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  for (void* p : exec->graph->to_free) cudaFree(p);
  delete exec;
  return cudaSuccess;
}

// ---- the device

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : set_error(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device != 0) return set_error(cudaErrorInvalidDevice);
  *p = {};
  std::snprintf(p->name, sizeof p->name, "simt (CUDA emulated on the CPU)");
  std::size_t free = 0;
  cudaMemGetInfo(&free, &p->totalGlobalMem);
  p->sharedMemPerBlock = config().max_static_smem;
  p->sharedMemPerBlockOptin = p->sharedMemPerMultiprocessor = config().max_dynamic_smem;
  p->warpSize = warpSize;
  p->maxThreadsPerBlock = config().max_threads_per_block;
  p->maxThreadsPerMultiProcessor = 2048;
  p->multiProcessorCount = 1;
  p->major = 8;
  p->minor = 0;
  p->regsPerBlock = 65536;
  p->l2CacheSize = 1 << 20;
  p->memoryBusWidth = 64;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess)
    return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = int(p.sharedMemPerBlock);
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = int(p.sharedMemPerBlockOptin);
      return cudaSuccess;
  }
  return set_error(cudaErrorInvalidValue);
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute,
                                 int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || std::size_t(value) > config().max_dynamic_smem)
    return refuse(cudaErrorInvalidValue, "shared memory limit",
                  "cudaFuncSetAttribute asks for " + std::to_string(value) +
                      " bytes of dynamic shared memory; expected at most " +
                      std::to_string(config().max_dynamic_smem));
  dynamic_smem_limit(kernel) = std::size_t(value);
  return cudaSuccess;
}
