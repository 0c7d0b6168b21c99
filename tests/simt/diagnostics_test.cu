// Kernels that are wrong, and what the emulator says about them. After each failure a
// correct kernel must run.
#include "support.hpp"

namespace {

__global__ void good_kernel(float* out) {
  __shared__ float values[64];
  values[threadIdx.x] = 1.0f;
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = values[63 - threadIdx.x];
}

/// Expects a failure whose report has all the words, and then a working emulator.
template <class... P, class... A>
void expect_failure(const std::vector<std::string>& words, void (*kernel)(P...),
                    const Grid& g, A&&... arguments) {
  const std::string report = report_of(kernel, g, std::forward<A>(arguments)...);
  REQUIRE(report != "");
  for (const std::string& word : words) CHECK_THAT(report, ContainsSubstring(word));
  cudaGetLastError();
  DeviceArray<float> out(3 * 64);
  run(good_kernel, {3, 64}, out.data());
  CHECK(out.host() == std::vector<float>(3 * 64, 1.0f));
}

bool fixed_order() {
  return emulator::config().order == emulator::Order::forward &&
         emulator::config().workers == 1;
}

__global__ void barrier_in_branch(float* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = 1;
    __syncthreads();  // @barrier in branch 1
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();  // @barrier in branch 2
  }
}
TEST_CASE("simt: barrier divergence names both lines") {
  DeviceArray<float> out(64);
  expect_failure({"barrier divergence", AT("barrier in branch 1"),
                  AT("barrier in branch 2"), "waits at", "arrived at", "thread (",
                  "of block (0,0,0)", "barrier_in_branch(float*)"},
                 barrier_in_branch, {1, 64}, out.data());
}

__global__ void barrier_uneven_loop(int n) {
  for (int i = 0; i < int(threadIdx.x) / 32 + n; ++i) __syncthreads();  // @barrier in loop
  __syncwarp();
  __syncthreads();  // @barrier behind loop
}
TEST_CASE("simt: a loop with a different number of barriers") {
  expect_failure({"barrier divergence", AT("barrier in loop"), AT("barrier behind loop")},
                 barrier_uneven_loop, {1, 64}, 1);
}

__global__ void shuffle_after_return(float* out, int n) {
  if (int(threadIdx.x) >= n) return;
  float v = float(threadIdx.x);
  v += __shfl_xor_sync(0xffffffffu, v, 16);  // @shuffle after return
  out[threadIdx.x] = v;
}
TEST_CASE("simt: shuffle from a lane that has returned") {
  DeviceArray<float> out(32);
  expect_failure(
      {"shuffle from inactive lane", "__shfl_xor_sync at " + AT("shuffle after return"),
       fixed_order() ? "thread (4,0,0)" : "thread (", "reads lane"},
      shuffle_after_return, {1, 32}, out.data(), 20);
}

__global__ void shuffle_in_branch(float* out) {
  float v = float(threadIdx.x);
  if (threadIdx.x < 16)
    v = __shfl_sync(0xffffffffu, v, 3);  // @shuffle in branch 1
  else
    v = __shfl_xor_sync(0xffffffffu, v, 1);  // @shuffle in branch 2
  out[threadIdx.x] = v;
}
TEST_CASE("simt: warp divergence names both lines") {
  DeviceArray<float> out(32);
  expect_failure(
      {"warp divergence", "__shfl_sync mask 0xffffffff at " + AT("shuffle in branch 1"),
       "__shfl_xor_sync mask 0xffffffff at " + AT("shuffle in branch 2")},
      shuffle_in_branch, {1, 32}, out.data());
}

__global__ void different_masks() { __ballot_sync(threadIdx.x == 0 ? 0x3u : 0x7u, 1); }
TEST_CASE("simt: different masks in one collective") {
  expect_failure({"warp divergence", "0x00000003", "0x00000007"}, different_masks, {1, 3});
}

__global__ void mask_without_me() { __syncwarp(0x0000fffeu); }  // @mask without me
TEST_CASE("simt: a mask that does not contain the caller") {
  expect_failure({"bad warp mask", AT("mask without me"), "0x0000fffe",
                  "does not contain its own lane"},
                 mask_without_me, {1, 32});
}

__global__ void odd_width(int* out) { out[threadIdx.x] = __shfl_sync(~0u, 1, 0, 5); }
TEST_CASE("simt: a shuffle width that is no power of two") {
  DeviceArray<int> out(32);
  expect_failure({"bad shuffle width", "width 5; expected 1, 2, 4, 8, 16 or 32"}, odd_width,
                 {1, 32}, out.data());
}

__global__ void wait_for_each_other() {
  if (threadIdx.x >= 32 && threadIdx.x < 48) __syncwarp();  // @deadlock warp
  __syncthreads();                                          // @deadlock barrier
}
TEST_CASE("simt: a deadlock lists who waits where") {
  expect_failure(
      {"deadlock", "48 thread(s) wait in __syncthreads at " + AT("deadlock barrier"),
       "16 thread(s) wait in __syncwarp mask 0xffffffff at " + AT("deadlock warp"),
       "e.g. thread ("},
      wait_for_each_other, {1, 64});
}

__global__ void two_lanes_wait(int* out) {
  if (threadIdx.x == 0)
    out[0] = int(__ballot_sync(0x3u, 1));
  else
    __syncthreads();
}
TEST_CASE("simt: a deadlock between a warp collective and a barrier") {
  DeviceArray<int> out(1);
  expect_failure({"deadlock", "1 thread(s) wait in __ballot_sync mask 0x00000003"},
                 two_lanes_wait, {1, 2}, out.data());
}

__global__ void store_kernel(float* out) { out[threadIdx.x] = 1.0f; }

TEST_CASE("simt: a host pointer as an argument") {
  std::vector<float> on_host(64);
  DeviceArray<float> x(64);
  expect_failure(
      {"host pointer passed to a kernel", "argument 0", "cudaMalloc", "store_kernel"},
      store_kernel, {1, 64}, on_host.data());
  expect_failure({"host pointer passed to a kernel"}, store_kernel, {1, 64}, x.data() + 64);
  float* freed = nullptr;
  cudaMalloc(&freed, 256);
  cudaFree(freed);
  expect_failure({"host pointer passed to a kernel"}, store_kernel, {1, 64}, freed);
}

TEST_CASE("simt: launch limits") {
  DeviceArray<float> x(64);
  expect_failure({"launch refused", "(2048,1,1) = 2048 threads; expected 1 to 1024"},
                 store_kernel, {1, 2048}, x.data());
  expect_failure({"launch refused", "= 0 threads"}, store_kernel, {1, 0}, x.data());
  expect_failure({"launch refused", "64 in z"}, store_kernel, {1, dim3(1, 1, 65)},
                 x.data());
  expect_failure({"launch refused", "(0,1,1) blocks"}, store_kernel, {0, 32}, x.data());
  expect_failure({"launch refused", "65535 in y"}, store_kernel, {dim3(1, 65536), 32},
                 x.data());
  expect_failure({"49153 bytes of dynamic shared memory; expected at most 49152",
                  "cudaFuncSetAttribute"},
                 store_kernel, {1, 32, 48 * 1024 + 1}, x.data());
}

__global__ void misaligned_async(const char* in) {
  __shared__ __align__(16) char tile[64];
  emulator::cp_async(tile, in + 4, 16, 16);  // @misaligned copy
}
__global__ void odd_async(const char* in) {
  __shared__ __align__(16) char tile[64];
  emulator::cp_async(tile, in, 12, 12);  // @odd copy
}
TEST_CASE("simt: cp.async of a wrong size or address") {
  DeviceArray<char> x(std::vector<char>(64, 'x'));
  expect_failure({"cp.async", AT("misaligned copy"), "multiples of 16"}, misaligned_async,
                 {1, 1}, x.data());
  expect_failure({"cp.async", AT("odd copy"), "copies 12 bytes; expected 4, 8 or 16"},
                 odd_async, {1, 1}, x.data());
}

__global__ void trap_kernel() {
  if (threadIdx.x == 5) __trap();
  __syncthreads();
}
TEST_CASE("simt: a trap ends the launch") {
  expect_failure({"__trap()", "thread (5,0,0)"}, trap_kernel, {1, 32});
}

TEST_CASE("simt: device functions called by host code throw") {
  CHECK_THROWS_WITH(__syncthreads(),
                    ContainsSubstring("__syncthreads is called by host code"));
}

// The address sanitizer has its own reports of these, and ends the process.
#ifndef SIMT_TEST_ASAN

__global__ void null_kernel(float* out) {
  if (threadIdx.x == 3 && blockIdx.x == 1) out[0] = 1.0f;  // @null store
}
TEST_CASE("simt: a null pointer fails the launch, not the process") {
  expect_failure({emulator::traces_memory() ? "null pointer" : "invalid memory access",
                  "thread (3,0,0) of block (1,0,0)", AT("null store")},
                 null_kernel, {2, 32}, static_cast<float*>(nullptr));
}

__global__ void overflow_kernel(int* out, int n) {
  volatile int local[1000];
  local[n] = n;
  if (n > 0) overflow_kernel(out, n - 1);
  out[n] = local[n];
}
TEST_CASE("simt: a stack overflow fails the launch") {
  DeviceArray<int> out(1000);
  expect_failure({"invalid memory access", "stack overflow"}, overflow_kernel, {1, 2},
                 out.data(), 999);
}

#endif

__global__ void endless_kernel(int* out, int n) {
  volatile int i = 0;
  if (threadIdx.x == 1)
    while (i != n) i = i & 1;
  out[threadIdx.x] = i;
}
__global__ void endless_polling(int* flag) {
  while (atomicAdd(flag, 0) == 0) {
  }
}
TEST_CASE("simt: a kernel that does not end is stopped") {
  struct WithTimeout {
    WithTimeout() { emulator::config().timeout_s = 1; }
    ~WithTimeout() { emulator::config().timeout_s = before; }
    int before = emulator::config().timeout_s;
  } with;
  DeviceArray<int> out(32), flag(std::vector<int>{0});
  expect_failure({"time limit", "thread (1,0,0)", "still running after 1 s"},
                 endless_kernel, {1, 32}, out.data(), 1);
  expect_failure({"time limit", " after 1 s"}, endless_polling, {2, 2}, flag.data());
}

TEST_CASE("simt: a report is forgotten with the next launch") {
  DeviceArray<float> x(64);
  expect_failure({"launch refused"}, store_kernel, {1, 0}, x.data());
  CHECK(emulator::last_report() == "");
}

}  // namespace
