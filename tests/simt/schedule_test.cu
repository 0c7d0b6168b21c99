// The four orders: what differs, what must not, and what a missing barrier looks like.
#include <algorithm>
#include <cmath>

#include "support.hpp"

namespace {

using emulator::Order;

/// Sets the order, and restores what was set before.
struct WithOrder {
  explicit WithOrder(Order order, std::uint64_t seed = 1) {
    emulator::config().order = order;
    emulator::config().seed = seed;
    emulator::config().workers = 1;
  }
  ~WithOrder() { emulator::config() = before; }
  emulator::Config before = emulator::config();
};

__global__ void arrival_kernel(int* order, int* next) {
  order[atomicAdd(next, 1)] = int(threadIdx.x);
}
std::vector<int> arrivals(Order order, std::uint64_t seed = 1) {
  const WithOrder with(order, seed);
  DeviceArray<int> list(64), next(std::vector<int>{0});
  run(arrival_kernel, {1, 64}, list.data(), next.data());
  return list.host();
}
TEST_CASE("simt: the orders start threads forward, reverse or at random") {
  const std::vector<int> forward = iota<int>(64);
  const std::vector<int> reverse(forward.rbegin(), forward.rend());
  CHECK(arrivals(Order::forward) == forward);
  CHECK(arrivals(Order::reverse) == reverse);
  const std::vector<int> a = arrivals(Order::random, 1), b = arrivals(Order::random, 2);
  CHECK(a != forward);
  CHECK(a != b);
  CHECK(a == arrivals(Order::random, 1));
  std::vector<int> sorted = a;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == forward);
}

/// Counts how far ahead of warp 1 warp 0 gets, with nothing but warp-wide meetings.
__global__ void racing_kernel(int* log, int* next) {
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x % 32 == 0) log[atomicAdd(next, 1)] = int(threadIdx.x) / 32;
    __syncwarp();
  }
}
TEST_CASE("simt: greedy lets one warp run ahead") {
  const auto log = [](Order order) {
    const WithOrder with(order);
    DeviceArray<int> list(8), next(std::vector<int>{0});
    run(racing_kernel, {1, 64}, list.data(), next.data());
    return list.host();
  };
  CHECK(log(Order::greedy) == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(log(Order::forward) != log(Order::greedy));
}

__global__ void reduce_kernel(const float* x, float* out, int steps) {
  __shared__ float partial[128];
  const unsigned t = threadIdx.x;
  float total = 0;
  for (int s = 0; s < steps; ++s) {
    partial[t] = x[unsigned(s) * 128 + t];
    __syncthreads();
    for (unsigned half = 64; half > 0; half /= 2) {
      if (t < half) partial[t] += partial[t + half];
      __syncthreads();
    }
    total += partial[0];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = total;
}
TEST_CASE("simt: a correct kernel gives the same result in every order") {
  DeviceArray<float> x(iota<float>(4 * 128)), out(3);
  for (const Order order : {Order::forward, Order::reverse, Order::random, Order::greedy})
    for (std::uint64_t seed = 1; seed <= (order == Order::random ? 10u : 1u); ++seed) {
      const WithOrder with(order, seed);
      run(reduce_kernel, {3, 128}, x.data(), out.data(), 4);
      CHECK(out.host() == std::vector<float>(3, 511 * 512 / 2));
    }
}

#ifndef SIMT_TEST_TRACE  // which reports these races
__global__ void missing_last_barrier(const float* x, float* out, int steps) {
  __shared__ float tile[64];
  float sum = 0;
  for (int s = 0; s < steps; ++s) {
    tile[threadIdx.x] = x[unsigned(s) * 64 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 64; ++i) sum += tile[i];
    __syncwarp();
  }
  out[threadIdx.x] = sum;
}
TEST_CASE("simt: a missing barrier shows as a wrong value in some order") {
  DeviceArray<float> x(iota<float>(4 * 64)), out(64);
  int wrong = 0;
  for (const Order order : {Order::reverse, Order::random, Order::greedy}) {
    const WithOrder with(order);
    run(missing_last_barrier, {1, 64}, x.data(), out.data(), 4);
    wrong += out.host() != std::vector<float>(64, 255 * 256 / 2);
  }
  CHECK(wrong > 0);
}

__global__ void read_before_write(const float* x, float* out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = x[threadIdx.x];
  out[threadIdx.x] = tile[(threadIdx.x + 32) % 128];
}
TEST_CASE("simt: poison shows a value that is read too early") {
  DeviceArray<float> x(iota<float>(128)), out(128);
  run(read_before_write, {1, 128}, x.data(), out.data());
  const std::vector<float> got = out.host();
  CHECK(std::any_of(got.begin(), got.end(), [](float v) { return std::isnan(v); }));
}
#endif

__global__ void count_kernel() {
  __syncthreads();
  __syncwarp();
  __shfl_sync(~0u, 1, 0);
  __syncthreads();
}
TEST_CASE("simt: counters of launches, threads, barriers and collectives") {
  emulator::reset_counters();
  run(count_kernel, {5, 64});
  const emulator::Counters c = emulator::counters();
  CHECK(c.launches == 1);
  CHECK(c.blocks == 5);
  CHECK(c.threads == 5 * 64);
  CHECK(c.barriers == 5 * 2);
  CHECK(c.warp_ops == 5 * 2 * 2);
  CHECK(c.mma == 0);
  CHECK(c.atomics == 0);
  CHECK(c.global_load.requests == 0);
  emulator::reset_counters();
  CHECK(emulator::counters().launches == 0);
}

TEST_CASE("simt: several workers share the blocks") {
  const WithOrder with(emulator::config().order);
  emulator::config().workers = 4;
  DeviceArray<float> x(iota<float>(4 * 128)), out(50);
  run(reduce_kernel, {50, 128}, x.data(), out.data(), 4);
  CHECK(out.host() == std::vector<float>(50, 511 * 512 / 2));
}

}  // namespace
