// Shared memory, atomics, cp.async and what fresh memory holds.
#include <cmath>

#include "support.hpp"

namespace {

SIMT_DYNAMIC_SMEM(smem)

__global__ void static_shared_kernel(int* out) {
  __shared__ int values[64];
  __shared__ int sum;
  const unsigned t = threadIdx.x;
  values[t] = int(t + blockIdx.x);
  if (t == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, values[63 - t]);
  __syncthreads();
  out[blockIdx.x * 64 + t] = sum;
}
TEST_CASE("simt: static shared memory belongs to the block") {
  DeviceArray<int> out(5 * 64);
  run(static_shared_kernel, {5, 64}, out.data());
  const std::vector<int> got = out.host();
  for (int b = 0; b < 5; ++b)
    for (int t = 0; t < 64; ++t) REQUIRE(got[std::size_t(b * 64 + t)] == 63 * 32 + 64 * b);
}

template <class T>
__global__ void dynamic_shared_kernel(T* out, int n) {
  extern __shared__ __align__(16) unsigned char smem[];
  T* values = reinterpret_cast<T*>(smem);
  for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) values[i] = T(i);
  __syncthreads();
  for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) out[i] = values[n - 1 - i];
}
TEST_CASE("simt: dynamic shared memory, and more than 48 KiB of it") {
  constexpr int kN = 40000;
  DeviceArray<double> out(kN);
  const std::size_t bytes = kN * sizeof(double) / 2;
  DeviceArray<float> small(100);
  run(dynamic_shared_kernel<float>, {1, 32, 400}, small.data(), 100);
  CHECK(small.host()[0] == 99.0f);
  CHECK_THAT(
      report_of(dynamic_shared_kernel<double>, {1, 64, bytes}, out.data(), kN / 2),
      ContainsSubstring("160000 bytes of dynamic shared memory; expected at most 49152"));
  REQUIRE(cudaFuncSetAttribute(dynamic_shared_kernel<double>,
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               int(bytes)) == cudaSuccess);
  run(dynamic_shared_kernel<double>, {1, 64, bytes}, out.data(), kN / 2);
  CHECK(out.host()[0] == kN / 2 - 1);
  CHECK(cudaFuncSetAttribute(dynamic_shared_kernel<double>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             1 << 20) == cudaErrorInvalidValue);
  CHECK_THAT(emulator::last_report(), ContainsSubstring("1048576"));
  cudaGetLastError();
}

struct Atomics {
  int add, sub, least, most, bits_and, bits_or, bits_xor;
  unsigned inc, dec;
  float real;
  double precise;
  unsigned long long wide;
};
__global__ void atomics_kernel(Atomics* a, int* seen) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&a->add, i);
  atomicSub(&a->sub, 1);
  atomicMin(&a->least, i - 50);
  atomicMax(&a->most, i);
  atomicAnd(&a->bits_and, ~(1 << i % 8));
  atomicOr(&a->bits_or, 1 << i % 16);
  atomicXor(&a->bits_xor, i);
  atomicInc(&a->inc, 6);
  atomicDec(&a->dec, 6);
  atomicAdd(&a->real, 0.5f);
  atomicAdd(&a->precise, 0.25);
  const unsigned long long old = atomicAdd(&a->wide, 1ull);
  atomicAdd(&seen[old], 1);  // every old value is given out once
}
TEST_CASE("simt: atomics, over several workers") {
  const int workers = emulator::config().workers;
  emulator::config().workers = 3;
  const Atomics zero{0, 0, 0, 0, 0xffff, 0, 0, 0, 0, 0.0f, 0.0, 0};
  DeviceArray<Atomics> a(std::vector<Atomics>{zero});
  constexpr int kN = 8 * 96;
  DeviceArray<int> seen(std::vector<int>(kN, 0));
  run(atomics_kernel, {8, 96}, a.data(), seen.data());
  const Atomics r = a.host()[0];
  int bits = 0;
  for (int i = 0; i < kN; ++i) bits ^= i;
  CHECK(r.add == kN * (kN - 1) / 2);
  CHECK(r.sub == -kN);
  CHECK(r.least == -50);
  CHECK(r.most == kN - 1);
  CHECK(r.bits_and == 0xff00);
  CHECK(r.bits_or == 0xffff);
  CHECK(r.bits_xor == bits);
  CHECK(r.inc == unsigned(kN % 7));
  CHECK(r.dec == unsigned((7 - kN % 7) % 7));
  CHECK(r.real == kN * 0.5f);
  CHECK(r.precise == kN * 0.25);
  for (const int s : seen.host()) CHECK(s == 1);
  emulator::config().workers = workers;
}

__global__ void spin_lock_kernel(int* lock, int* count) {
  bool done = false;
  while (!done)
    if (atomicCAS(lock, 0, 1) == 0) {
      count[0] += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
TEST_CASE("simt: a spin lock ends, and in the trace flavour is no race") {
  DeviceArray<int> lock(std::vector<int>{0}), count(std::vector<int>{0});
  run(spin_lock_kernel, {4, 64}, lock.data(), count.data());
  CHECK(count.host()[0] == 256);
}

__global__ void polling_kernel(int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    out[0] = 1;
  } else {
    __nanosleep(100);
    atomicExch(flag, 1);
  }
}
TEST_CASE("simt: polling by atomics lets the others run") {
  DeviceArray<int> flag(std::vector<int>{0}), out(1);
  run(polling_kernel, {1, 2}, flag.data(), out.data());
  CHECK(out.host()[0] == 1);
}

template <int Bytes>
__global__ void async_kernel(const unsigned char* in, unsigned char* out, int valid) {
  __shared__ __align__(16) unsigned char tile[2][32 * Bytes];
  const unsigned t = threadIdx.x;
  emulator::cp_async(&tile[0][t * Bytes], in + t * Bytes, Bytes, Bytes);
  emulator::cp_async_commit();
  emulator::cp_async(&tile[1][t * Bytes], in + (32 + t) * Bytes, Bytes, std::size_t(valid));
  emulator::cp_async_commit();
  emulator::cp_async_wait(1);
  __syncthreads();
  for (unsigned i = t; i < 32 * Bytes; i += 32) out[i] = tile[0][32 * Bytes - 1 - i];
  emulator::cp_async_wait(0);
  __syncthreads();
  for (unsigned i = t; i < 32 * Bytes; i += 32) out[32 * Bytes + i] = tile[1][i];
}
template <int Bytes>
void check_async(int valid) {
  std::vector<unsigned char> in(64 * Bytes);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<unsigned char>(i * 37 + 1);
  DeviceArray<unsigned char> x(in), y(in.size());
  run(async_kernel<Bytes>, {1, 32}, x.data(), y.data(), valid);
  const std::vector<unsigned char> got = y.host();
  for (int i = 0; i < 32 * Bytes; ++i) {
    REQUIRE(got[std::size_t(i)] == in[std::size_t(32 * Bytes - 1 - i)]);
    REQUIRE(got[std::size_t(32 * Bytes + i)] ==
            (i % Bytes < valid ? in[std::size_t(32 * Bytes + i)] : 0));
  }
}
TEST_CASE("simt: cp.async in groups, with zero fill") {
  check_async<4>(4);
  check_async<8>(8);
  check_async<16>(16);
  check_async<16>(0);
  check_async<16>(4);
}

#ifndef SIMT_TEST_TRACE  // there, reading it is an error
__global__ void fresh_kernel(float* out, const float* global_memory) {
  extern __shared__ __align__(16) unsigned char smem[];
  __shared__ float array[32];
  __shared__ __half halves[32];
  const unsigned t = threadIdx.x;
  out[t] = std::isnan(array[t]) && std::isnan(float(halves[t])) &&
           std::isnan(reinterpret_cast<float*>(smem)[t]) && std::isnan(global_memory[t]);
  array[t] = reinterpret_cast<float*>(smem)[t] = 0.0f;  // must not reach the next block
  halves[t] = 0.0f;
}
TEST_CASE("simt: fresh memory is NaN, in every block and every launch") {
  DeviceArray<float> out(32), fresh(32);
  for (int i = 0; i < 3; ++i) {
    run(fresh_kernel, {7, 32, 128}, out.data(), fresh.data());
    for (const float v : out.host()) REQUIRE(v == 1.0f);
  }
}
#endif

}  // namespace
