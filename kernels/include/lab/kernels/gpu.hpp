/// @file
/// What host code needs of a GPU, real or emulated: memory, copies, streams, graphs. Every
/// .cu file exists twice in a program, as lab::cuda (compiled by nvcc) and as lab::simt
/// (compiled for this CPU, on the emulator of kernels/simt).
#pragma once

#include <cstddef>
#include <string>

struct CUstream_st;
struct CUgraphExec_st;

namespace lab {

/// An order of work on a GPU: cudaStream_t. Null is the default stream.
using Stream = CUstream_st*;
/// Recorded work that is launched as a whole: cudaGraphExec_t.
using GraphExec = CUgraphExec_st*;

/// Throws lab::Error: .cu files stay clear of fmt, which nvcc cannot compile.
[[noreturn]] void throw_error(const std::string& message);

}  // namespace lab

/// Declares the same functions for the GPU and for the emulator.
#define LAB_GPU_VERSIONS(...) \
  namespace lab::cuda {       \
  __VA_ARGS__                 \
  }                           \
  namespace lab::simt {       \
  __VA_ARGS__                 \
  }

// In both namespaces (all throw lab::Error with the runtime's words):
//   gpu_missing       empty, or the sentence that says why there is no such GPU
//   gpu_name          the GPU's name; "simt (CUDA emulated on the CPU)" when emulated
//   allocate, release         device memory, from a pool, in stream order
//   allocate_pinned, ...      host memory that asynchronous copies can use
//   copy_*            asynchronous; host memory should be pinned
//   synchronize       waits for everything in the stream
//   begin_capture     from here on, work given to the stream is recorded, not done
//   end_capture       gives what was recorded as a graph that launch_graph() repeats
//   gpu_read_bandwidth        bytes per second that a kernel reads from a buffer of `bytes`
//   gpu_flop_peak             f32 operations per second of fused multiply-adds on
//   registers;
//                             `steps` of each thread: 1 << 16 takes milliseconds
LAB_GPU_VERSIONS(
    std::string gpu_missing(); std::string gpu_name();
    std::byte * allocate(std::size_t bytes, Stream stream);
    void release(std::byte* p, Stream stream);
    std::byte * allocate_pinned(std::size_t bytes); void release_pinned(std::byte* p);
    void copy_to_device(void* device, const void* host, std::size_t bytes, Stream stream);
    void copy_to_host(void* host, const void* device, std::size_t bytes, Stream stream);
    void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream);
    Stream make_stream(); void destroy_stream(Stream stream);
    void synchronize(Stream stream); void begin_capture(Stream stream);
    GraphExec end_capture(Stream stream); void launch_graph(GraphExec graph, Stream stream);
    void destroy_graph(GraphExec graph);
    double gpu_read_bandwidth(std::size_t bytes, Stream stream);
    double gpu_flop_peak(int steps, Stream stream);)
