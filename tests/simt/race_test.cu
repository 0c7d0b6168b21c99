// Trace flavour: races, values that are not there, and accesses out of bounds.
#include "support.hpp"

namespace {

SIMT_DYNAMIC_SMEM(smem)

/// Launches a kernel that must be reported: with all the words in the forward order, which
/// decides who is found first, and with the first of them in the order of this run.
template <class... P, class... A>
void expect_report(const std::vector<std::string>& words, void (*kernel)(P...),
                   const Grid& g, A&&... arguments) {
  CHECK_THAT(report_of(kernel, g, arguments...), ContainsSubstring(words.front()));
  const emulator::Order order = emulator::config().order;
  emulator::config().order = emulator::Order::forward;
  const std::string report = report_of(kernel, g, arguments...);
  emulator::config().order = order;
  for (const std::string& word : words) CHECK_THAT(report, ContainsSubstring(word));
  cudaGetLastError();
}

__global__ void no_barrier(const float* x, float* out) {
  __shared__ float s[128];
  s[threadIdx.x] = x[threadIdx.x];                 // @no barrier, store
  out[threadIdx.x] = s[(threadIdx.x + 32) % 128];  // @no barrier, load
}
TEST_CASE("simt: race between warps through shared memory") {
  DeviceArray<float> x(iota<float>(128)), out(128);
  expect_report({"race (", "__shared__ ", "no_barrier(float const*, float*)::s, byte ",
                 " of 512", AT("no barrier, store"), AT("no barrier, load"),
                 "no __syncthreads() between the two"},
                no_barrier, {1, 128}, x.data(), out.data());
}

__global__ void no_second_barrier(const float* x, float* out, int steps) {
  __shared__ float s[64];
  float sum = 0;
  for (int k = 0; k < steps; ++k) {
    s[threadIdx.x] = x[unsigned(k) * 64 + threadIdx.x];  // @loop, store
    __syncthreads();
    for (int i = 0; i < 64; ++i) sum += s[i];  // @loop, load
  }
  out[threadIdx.x] = sum;
}
TEST_CASE("simt: the barrier at the end of a loop is missing") {
  DeviceArray<float> x(iota<float>(256)), out(64);
  run(no_second_barrier, {1, 64}, x.data(), out.data(), 1);
  expect_report({"race (", AT("loop, store"), AT("loop, load")}, no_second_barrier, {1, 64},
                x.data(), out.data(), 2);
}

template <bool Sync>
__global__ void within_a_warp(const float* x, float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];  // @warp, store
  if (Sync) __syncwarp();
  out[threadIdx.x] = s[31 - threadIdx.x];  // @warp, load
}
TEST_CASE("simt: a warp needs __syncwarp") {
  DeviceArray<float> x(iota<float>(32)), out(32);
  run(within_a_warp<true>, {1, 32}, x.data(), out.data());
  expect_report({"same warp, but no __syncwarp()", AT("warp, load"), AT("warp, store")},
                within_a_warp<false>, {1, 32}, x.data(), out.data());
}

__global__ void shuffle_is_no_fence(const float* x, float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __shfl_xor_sync(~0u, 1, 1);
  out[threadIdx.x] = s[31 - threadIdx.x];
}
TEST_CASE("simt: a shuffle does not order memory") {
  DeviceArray<float> x(iota<float>(32)), out(32);
  expect_report({"same warp, but no __syncwarp()"}, shuffle_is_no_fence, {1, 32}, x.data(),
                out.data());
}

__global__ void partial_sync(const float* x, float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp(threadIdx.x < 16 ? 0xffffu : 0xffff0000u);
  out[threadIdx.x] = s[(threadIdx.x + 16) % 32];
}
TEST_CASE("simt: __syncwarp orders only the lanes of its mask") {
  DeviceArray<float> x(iota<float>(32)), out(32);
  expect_report({"same warp"}, partial_sync, {1, 32}, x.data(), out.data());
}

__global__ void three_readers(const float* x, float* out) {
  __shared__ float s[2];
  const unsigned t = threadIdx.x;
  if (t == 0) s[0] = x[0];
  __syncthreads();
  out[t] = s[0];  // @three readers, load
  if (t >= 32) __syncwarp();
  if (t == 95) s[0] = 1.0f;  // @three readers, store
}
TEST_CASE("simt: a write after many reads, of which the last are ordered") {
  DeviceArray<float> x(iota<float>(2)), out(96);
  expect_report(
      {"race (write after read)", AT("three readers, load"), AT("three readers, store")},
      three_readers, {1, 96}, x.data(), out.data());
}

__global__ void between_blocks(float* out) {
  if (threadIdx.x == 0) out[0] += 1.0f;  // @blocks, add
}
__global__ void between_blocks_atomic(float* out) {
  if (threadIdx.x == 0) atomicAdd(out, 1.0f);
}
__global__ void atomic_and_plain(float* out) {
  if (blockIdx.x == 0)
    atomicAdd(out, 1.0f);  // @mixed, atomic
  else
    out[0] = 2.0f;  // @mixed, plain
}
TEST_CASE("simt: blocks need atomics, all of them") {
  DeviceArray<float> out(std::vector<float>{0});
  run(between_blocks, {1, 32}, out.data());
  run(between_blocks, {1, 32}, out.data());  // launches are ordered
  run(between_blocks_atomic, {64, 32}, out.data());
  expect_report({"race (", "global memory, byte 0 of 4 from cudaMalloc",
                 "another block wrote at " + AT("blocks, add")},
                between_blocks, {4, 32}, out.data());
  expect_report({"race (write after write)", AT("mixed, atomic"), AT("mixed, plain")},
                atomic_and_plain, {2, 1}, out.data());
}

// The last block to finish adds up what the others have left (CUDA's threadFenceReduction).
template <bool Fence, bool Atomic, bool EveryThread>
__global__ void last_block_reduces(const float* x, float* partial, float* out,
                                   unsigned* finished) {
  __shared__ bool last;
  const unsigned t = threadIdx.x, n = EveryThread ? 32 : 1;
  if (t < n) partial[blockIdx.x * n + t] = x[blockIdx.x * n + t];  // @partial, store
  if (EveryThread) __syncthreads();
  if (t == 0) {
    if (Fence) __threadfence();
    const unsigned ticket = Atomic ? atomicInc(finished, gridDim.x - 1) : finished[0]++;
    last = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float sum = 0;
  if (t == 0) {
    for (unsigned i = 0; i < gridDim.x * n; ++i) sum += partial[i];
    out[0] = sum;
    finished[0] = 0;
  }
}
TEST_CASE("simt: the last block reduces") {
  DeviceArray<float> x(iota<float>(6 * 32)), partial(6 * 32), out(1);
  DeviceArray<unsigned> finished(std::vector<unsigned>{0});
  const Grid grid{6, 32};
  run(last_block_reduces<true, true, false>, grid, x.data(), partial.data(), out.data(),
      finished.data());
  CHECK(out.host()[0] == 15.0f);
  run(last_block_reduces<true, true, true>, grid, x.data(), partial.data(), out.data(),
      finished.data());
  CHECK(out.host()[0] == 191.0f * 192 / 2);
  expect_report({"race (read after write)", "another block wrote", AT("partial, store")},
                last_block_reduces<false, true, true>, grid, x.data(), partial.data(),
                out.data(), finished.data());
  expect_report({"race (read after write)"}, last_block_reduces<false, true, false>, grid,
                x.data(), partial.data(), out.data(), finished.data());
  expect_report({"race (read after write)"}, last_block_reduces<true, false, false>, grid,
                x.data(), partial.data(), out.data(), finished.data());
}

template <bool Device>
__global__ void flag_chain(int* data, int* flags) {
  // Block b passes a value to block b + 1 through two flags, one after the other.
  const unsigned b = blockIdx.x;
  if (b > 0) {
    while (atomicAdd(&flags[b - 1], 0) == 0) {
    }
    __threadfence();
    data[b] = data[b - 1] + data[0] + 1;
  } else {
    data[0] = 1;
  }
  if (Device)
    __threadfence();
  else
    __threadfence_block();
  atomicExch(&flags[b], 1);
}
TEST_CASE("simt: what is passed on through a chain of flags") {
  DeviceArray<int> data(4), flags(std::vector<int>(4, 0));
  run(flag_chain<true>, {4, 1}, data.data(), flags.data());
  CHECK(data.host()[3] == 7);
  cudaMemset(flags.data(), 0, 16);
  expect_report({"race (", "another block"}, flag_chain<false>, {4, 1}, data.data(),
                flags.data());
}

__global__ void volatile_flag(volatile int* flag, float* data, float* out) {
  if (blockIdx.x == 0) {
    data[0] = 3.0f;
    __threadfence();
    flag[0] = 1;
  } else {
    while (flag[0] == 0) {
    }
    __threadfence();
    out[0] = data[0];
  }
}
TEST_CASE("simt: a volatile flag with fences is no race") {
  DeviceArray<int> flag(std::vector<int>{0});
  DeviceArray<float> data(1), out(1);
  run(volatile_flag, {2, 1}, (volatile int*)flag.data(), data.data(), out.data());
  CHECK(out.host()[0] == 3.0f);
}

// ---- bounds and values

__global__ void no_bounds_check(const float* x, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i];  // @no bounds
}
TEST_CASE("simt: global memory out of bounds") {
  DeviceArray<float> x(iota<float>(128)), small(100);
  expect_report({"out-of-bounds global access", "byte 400 of 400", "thread (100,0,0)",
                 "writes at " + AT("no bounds")},
                no_bounds_check, {1, 128}, x.data(), small.data());
}

struct Wrapped {
  const float* data;
};
__global__ void read_wrapped(Wrapped in, float* out) {
  out[threadIdx.x] = in.data[threadIdx.x];  // @wrapped, load
}
TEST_CASE("simt: pointers inside of arguments: freed, null and host memory") {
  DeviceArray<float> out(32);
  float* freed = nullptr;
  cudaMalloc(&freed, 4096);
  cudaMemset(freed, 0, 4096);
  cudaFree(freed);
  expect_report({"out-of-bounds global access", "reads at"}, read_wrapped, {1, 32},
                Wrapped{freed}, out.data());
  expect_report({"null pointer", "reads at"}, read_wrapped, {1, 32}, Wrapped{nullptr},
                out.data());
  const std::vector<float> on_host(32, 1.0f);
  expect_report({"host pointer used by a kernel", AT("wrapped, load")}, read_wrapped,
                {1, 32}, Wrapped{on_host.data()}, out.data());
}

__global__ void beyond_dynamic(float* out) {
  extern __shared__ __align__(16) unsigned char smem[];
  float* s = reinterpret_cast<float*>(smem);
  s[threadIdx.x + 1] = 1.0f;  // @beyond dynamic
  __syncthreads();
  out[threadIdx.x] = threadIdx.x ? s[threadIdx.x] : 0.0f;
}
__global__ void beyond_static(float* out, unsigned k) {
  __shared__ float s[32];
  s[(threadIdx.x + k) * 5] = 1.0f;  // @beyond static
  out[threadIdx.x] = s[0];
}
TEST_CASE("simt: shared memory out of bounds") {
  DeviceArray<float> out(64);
  expect_report(
      {"out-of-bounds shared access", "dynamic __shared__ memory, byte 256 of 256",
       "thread (63,0,0)", AT("beyond dynamic")},
      beyond_dynamic, {1, 64, 256}, out.data());
  run(beyond_dynamic, {1, 64, 260}, out.data());
  expect_report({"out-of-bounds shared access", AT("beyond static")}, beyond_static,
                {1, 32}, out.data(), 0u);
}

__global__ void uninitialised(const float* x, float* out) {
  __shared__ float s[64];
  if (threadIdx.x < 60) s[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x] + (x ? x[threadIdx.x] : 0.0f);  // @uninitialised
}
TEST_CASE("simt: values that nobody has written") {
  DeviceArray<float> fresh(64), out(64), half_set(64);
  expect_report({"uninitialised read", "::s, byte 240 of 256", "thread (60,0,0)",
                 AT("uninitialised"), "nobody has written it in this block"},
                uninitialised, {1, 64}, static_cast<const float*>(nullptr), out.data());
  expect_report({"uninitialised read", "global memory, byte 0 of 256"}, uninitialised,
                {1, 64}, fresh.data(), out.data());
  cudaMemset(half_set.data(), 0, 128);
  expect_report({"uninitialised read", "global memory, byte 128 of 256"}, uninitialised,
                {1, 64}, half_set.data(), out.data());
}

__global__ void byte_wise(unsigned char* out) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);  // bytes of one word: no race
  out[threadIdx.x] = s[threadIdx.x];
}
TEST_CASE("simt: neighbouring bytes are not the same memory") {
  DeviceArray<unsigned char> out(64);
  run(byte_wise, {1, 64}, out.data());
}

__global__ void misaligned(const float* x, float* out) {
  const auto* p = reinterpret_cast<const float4*>(x + threadIdx.x * 4 + 1);
  const float4 v = *p;  // @misaligned
  out[threadIdx.x] = v.x + v.w;
}
TEST_CASE("simt: a vector load from an address that is no multiple of its size") {
  DeviceArray<float> x(iota<float>(200)), out(32);
  expect_report({"misaligned access", AT("misaligned"), "16 bytes at once"}, misaligned,
                {1, 32}, x.data(), out.data());
}

template <bool Wait, bool Barrier>
__global__ void async_kernel(const float* x, float* out) {
  __shared__ __align__(16) float s[128];
  emulator::cp_async(&s[threadIdx.x * 4], x + threadIdx.x * 4, 16, 16);  // @async, copy
  emulator::cp_async_commit();
  if (Wait) emulator::cp_async_wait(0);
  if (Barrier) __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];  // @async, load
}
TEST_CASE("simt: cp.async needs a wait and then a barrier") {
  DeviceArray<float> x(iota<float>(128)), out(32);
  run(async_kernel<true, true>, {1, 32}, x.data(), out.data());
  expect_report({"uninitialised read", AT("async, load")}, async_kernel<false, true>,
                {1, 32}, x.data(), out.data());
  expect_report({"race (read after write)", AT("async, load"), AT("async, copy")},
                async_kernel<true, false>, {1, 32}, x.data(), out.data());
}

template <bool Barrier>
__global__ void async_overwrites(const float* x, float* out) {
  __shared__ __align__(16) float s[128];
  float sum = 0;
  for (int k = 0; k < 2; ++k) {
    const float* from = x + k * 128 + threadIdx.x * 4;
    emulator::cp_async(&s[threadIdx.x * 4], from, 16, 16);  // @overwrite, copy
    emulator::cp_async_commit();
    emulator::cp_async_wait(0);
    __syncthreads();
    sum += s[127 - threadIdx.x];  // @overwrite, load
    if (Barrier) __syncthreads();
  }
  out[threadIdx.x] = sum;
}
TEST_CASE("simt: cp.async into memory that is still being read") {
  DeviceArray<float> x(iota<float>(256)), out(32);
  run(async_overwrites<true>, {1, 32}, x.data(), out.data());
  expect_report({"race (", AT("overwrite, copy"), AT("overwrite, load")},
                async_overwrites<false>, {1, 32}, x.data(), out.data());
}

__global__ void ldmatrix_without_barrier(std::uint32_t* out) {
  __shared__ __align__(16) unsigned short tile[32][8];
  for (unsigned i = 0; i < 8; ++i) tile[31 - threadIdx.x][i] = 1;  // @ldmatrix, store
  std::uint32_t r[4];
  emulator::ldmatrix_x4<false>(r, tile[threadIdx.x]);  // @ldmatrix, load
  out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
TEST_CASE("simt: ldmatrix reads on behalf of the lane that gives the address") {
  DeviceArray<std::uint32_t> out(32);
  expect_report({"race (", "same warp", AT("ldmatrix, store"), AT("ldmatrix, load")},
                ldmatrix_without_barrier, {1, 32}, out.data());
}

}  // namespace
