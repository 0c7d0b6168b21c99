// Trace flavour: kernels whose sectors and wavefronts are known from the rules of the
// hardware.
#include "support.hpp"

namespace {

/// Runs the kernel alone and returns what it did.
template <class... P, class... A>
emulator::Counters counters_of(void (*kernel)(P...), const Grid& g, A&&... arguments) {
  emulator::reset_counters();
  run(kernel, g, std::forward<A>(arguments)...);
  return emulator::counters();
}

void check(const emulator::Traffic& t, std::uint64_t requests, std::uint64_t units,
           std::uint64_t ideal, std::uint64_t useful_bytes) {
  CHECK(t.requests == requests);
  CHECK(t.units == units);
  CHECK(t.ideal_units == ideal);
  CHECK(t.useful_bytes == useful_bytes);
}

template <class T>
__global__ void strided(const T* x, T* out, unsigned stride, unsigned offset) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i * stride + offset];
}
TEST_CASE("simt: global sectors of coalesced, shifted and strided loads") {
  REQUIRE(emulator::traces_memory());
  DeviceArray<float> x(std::vector<float>(64 * 40, 1.0f)), out(64);
  emulator::Counters c = counters_of(strided<float>, {2, 32}, x.data(), out.data(), 1u, 0u);
  check(c.global_load, 2, 2 * 4, 2 * 4, 256);
  check(c.global_store, 2, 2 * 4, 2 * 4, 256);
  CHECK(c.global_load.lanes == 64);
  CHECK(c.shared_load.requests == 0);
  c = counters_of(strided<float>, {1, 32}, x.data(), out.data(), 1u, 1u);
  check(c.global_load, 1, 5, 4, 128);
  c = counters_of(strided<float>, {1, 32}, x.data(), out.data(), 2u, 0u);
  check(c.global_load, 1, 8, 4, 128);
  c = counters_of(strided<float>, {1, 32}, x.data(), out.data(), 32u, 0u);
  check(c.global_load, 1, 32, 4, 128);
  c = counters_of(strided<float>, {1, 32}, x.data(), out.data(), 0u, 0u);  // a broadcast
  check(c.global_load, 1, 1, 1, 4);
  c = counters_of(strided<float>, {1, 20}, x.data(), out.data(), 1u, 0u);  // part of a warp
  check(c.global_load, 1, 3, 3, 80);
}
#ifndef __clang__  // which takes vector loads apart
TEST_CASE("simt: global sectors of vector loads") {
  DeviceArray<float4> x(std::vector<float4>(128)), out(64);
  emulator::Counters c =
      counters_of(strided<float4>, {1, 32}, x.data(), out.data(), 1u, 0u);
  check(c.global_load, 1, 16, 16, 512);
  check(c.global_store, 1, 16, 16, 512);
  c = counters_of(strided<float4>, {1, 32}, x.data(), out.data(), 2u, 0u);
  check(c.global_load, 1, 32, 16, 512);
}
#endif
TEST_CASE("simt: global sectors of small elements") {
  DeviceArray<unsigned char> b(std::vector<unsigned char>(64, 1)), bytes(64);
  emulator::Counters c =
      counters_of(strided<unsigned char>, {1, 32}, b.data(), bytes.data(), 1u, 0u);
  check(c.global_load, 1, 1, 1, 32);
  DeviceArray<__half> h(std::vector<__half>(64, __half(1.0f))), halves(64);
  c = counters_of(strided<__half>, {1, 32}, h.data(), halves.data(), 1u, 0u);
  check(c.global_load, 1, 2, 2, 64);
}

template <class T>
__global__ void shared_strided(T* out, unsigned stride) {
  __shared__ __align__(16) T s[2048 / (sizeof(T) / 4 ? sizeof(T) / 4 : 1)];
  const unsigned i = threadIdx.x * stride;
  s[i] = T{};
  __syncthreads();
  out[threadIdx.x] = s[i];
}
TEST_CASE("simt: shared wavefronts: n-way bank conflicts, broadcasts and wide accesses") {
  DeviceArray<float> out(32);
  const std::pair<unsigned, std::uint64_t> cases[] = {
      {0, 1}, {1, 1}, {2, 2}, {3, 1}, {4, 4}, {8, 8}, {16, 16}, {32, 32}, {33, 1}};
  for (const auto& [stride, wavefronts] : cases) {
    INFO("stride " << stride);
    if (stride == 0) continue;  // a race: see the broadcast below
    const emulator::Counters c =
        counters_of(shared_strided<float>, {1, 32}, out.data(), stride);
    check(c.shared_store, 1, wavefronts, 1, 128);
    check(c.shared_load, 1, wavefronts, 1, 128);
  }
  DeviceArray<float2> out2(32);
  check(counters_of(shared_strided<float2>, {1, 32}, out2.data(), 1u).shared_load, 1, 2, 2,
        256);
  check(counters_of(shared_strided<float2>, {1, 32}, out2.data(), 2u).shared_load, 1, 4, 2,
        256);
  DeviceArray<float4> out4(32);
  check(counters_of(shared_strided<float4>, {1, 32}, out4.data(), 1u).shared_load, 1, 4, 4,
        512);
  check(counters_of(shared_strided<float4>, {1, 32}, out4.data(), 2u).shared_load, 1, 8, 4,
        512);
  DeviceArray<__half> out_half(32);
  check(counters_of(shared_strided<__half>, {1, 32}, out_half.data(), 1u).shared_load, 1, 1,
        1, 64);
}

__global__ void broadcast(float* out) {
  __shared__ float s[32][33];
  for (int r = 0; r < 32; ++r) s[r][threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x][3] + s[7][7];
}
TEST_CASE("simt: a padded column and a broadcast are free of conflicts") {
  DeviceArray<float> out(32);
  const emulator::Counters c = counters_of(broadcast, {1, 32}, out.data());
  check(c.shared_store, 32, 32, 32, 32 * 128);
  check(c.shared_load, 2, 2, 2, 128 + 4);
}

__global__ void divergent(float* out) {
  // Odd lanes come to the same store after the even ones: two passes, but one request of
  // the warp for each execution of it.
  for (unsigned i = 0; i < 1 + threadIdx.x % 2; ++i) out[i * 32 + threadIdx.x] = 1.0f;
}
TEST_CASE("simt: lanes that run a loop longer ask alone") {
  DeviceArray<float> out(64);
  const emulator::Counters c = counters_of(divergent, {1, 32}, out.data());
  check(c.global_store, 2, 8, 4 + 2, 128 + 64);
  CHECK(c.global_store.lanes == 48);
}

template <int Pitch>
__global__ void ldmatrix_kernel(const __half* x, std::uint32_t* out) {
  __shared__ __align__(16) __half tile[16][Pitch];
  const unsigned t = threadIdx.x;
  emulator::cp_async(&tile[t / 2][t % 2 * 8], x + t * 8, 16, 16);
  emulator::cp_async_commit();
  emulator::cp_async_wait(0);
  __syncthreads();
  std::uint32_t r[4];
  emulator::ldmatrix_x4<false>(r, &tile[t % 16][t / 16 * 8]);
  out[t] = r[0] ^ r[1] ^ r[2] ^ r[3];
}
TEST_CASE("simt: ldmatrix and cp.async") {
  DeviceArray<__half> x(std::vector<__half>(256, __half(1.0f)));
  DeviceArray<std::uint32_t> out(32);
  emulator::Counters c = counters_of(ldmatrix_kernel<24>, {1, 32}, x.data(), out.data());
  check(c.global_load, 1, 16, 16, 512);
  check(c.shared_load, 1, 4, 4, 512);  // rows 48 bytes apart: all banks different
  CHECK(c.async_bytes == 512);
  CHECK(c.warp_ops == 1);
  // Rows 32 bytes apart: rows 0 and 4 of a matrix start in the same bank.
  c = counters_of(ldmatrix_kernel<16>, {1, 32}, x.data(), out.data());
  check(c.shared_load, 1, 8, 4, 512);
  check(c.shared_store, 1, 4, 4, 512);
  // Rows 128 bytes apart: all eight rows of a matrix in the same banks.
  c = counters_of(ldmatrix_kernel<64>, {1, 32}, x.data(), out.data());
  check(c.shared_load, 1, 32, 4, 512);
}

__global__ void tensor_kernel(const __half* a, float* d) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, a, 16);
  wmma::fill_fragment(fc, 0.0f);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(d + blockIdx.x * 256, fc, 16, wmma::mem_row_major);
}
TEST_CASE("simt: tensor core instructions are counted, and their memory") {
  DeviceArray<__half> a(std::vector<__half>(256, __half(1.0f)));
  DeviceArray<float> d(2 * 256);
  const emulator::Counters c = counters_of(tensor_kernel, {2, 32}, a.data(), d.data());
  CHECK(c.mma == 2);
  CHECK(c.warp_ops == 2 * 4);
  CHECK(c.global_load.useful_bytes == 2 * 2 * 512);
  CHECK(c.global_store.useful_bytes == 2 * 1024);
}

__global__ void atomic_kernel(int* x) { atomicAdd(&x[threadIdx.x % 4], 1); }
TEST_CASE("simt: atomics are counted apart") {
  DeviceArray<int> x(std::vector<int>(4, 0));
  const emulator::Counters c = counters_of(atomic_kernel, {2, 32}, x.data());
  CHECK(c.atomics == 64);
  CHECK(c.global_load.requests == 0);
  CHECK(c.global_store.requests == 0);
}

__device__ __forceinline__ float doubled(const float* p) {
  return 2.0f * __ldg(p);  // @through a helper
}
__global__ void lines_kernel(const float* x, float* out) {
  __shared__ float s[32][32];
  s[threadIdx.x][0] = doubled(x + threadIdx.x);  // @column store
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x][0];  // @column load
}
TEST_CASE("simt: traffic by source line") {
  DeviceArray<float> x(iota<float>(32)), out(96);
  counters_of(lines_kernel, {3, 32}, x.data(), out.data());
  const std::vector<emulator::LineTraffic> lines = emulator::line_traffic();
  REQUIRE(lines.size() == 4);
  const auto of = [&](const std::string& line, bool shared, bool store) {
    for (const emulator::LineTraffic& l : lines)
      if (l.line == line && l.shared == shared && l.store == store) return l.traffic;
    return emulator::Traffic{};
  };
  CHECK(of(AT("through a helper"), false, false).units == 3 * 4);
  CHECK(of(AT("column store"), true, true).units == 3 * 32);
  CHECK(of(AT("column load"), true, false).units == 3 * 32);
  CHECK(of(AT("column load"), false, true).units == 3 * 4);
  const std::string table = emulator::line_traffic_table();
  CHECK_THAT(table, ContainsSubstring(AT("column store") + " "));
  CHECK_THAT(table, ContainsSubstring("32.00 wavefronts (ideal 1.00)  <- bank conflicts"));
  emulator::reset_counters();
  CHECK(emulator::line_traffic().empty());
}

}  // namespace
