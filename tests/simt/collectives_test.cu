// Shuffles, votes, reductions, matches and barriers against definitions written from the
// PTX ISA and the programming guide, not from the emulator.
#include <bit>
#include <cstdint>

#include "support.hpp"

namespace {

enum Kind { kIdx, kUp, kDown, kXor };

__global__ void shuffle_kernel(int* out, Kind kind, unsigned mask, int arg, int width) {
  const int lane = int(threadIdx.x), value = 100 + 7 * lane;
  if (!(mask >> lane & 1u)) return;
  int r = 0;
  if (kind == kIdx) r = __shfl_sync(mask, value, arg, width);
  if (kind == kUp) r = __shfl_up_sync(mask, value, unsigned(arg), width);
  if (kind == kDown) r = __shfl_down_sync(mask, value, unsigned(arg), width);
  if (kind == kXor) r = __shfl_xor_sync(mask, value, arg, width);
  out[lane] = r;
}

/// The lane that the PTX instruction shfl reads; `c` packs clamp and segment mask.
int shfl_source(Kind kind, int lane, int b, int width) {
  const int segment_mask = 32 - width, clamp = kind == kUp ? 0 : 31;
  const int max_lane = (lane & segment_mask) | (clamp & ~segment_mask);
  const int min_lane = lane & segment_mask;
  int j = 0;
  bool in_range = false;
  switch (kind) {
    case kUp:
      j = lane - b, in_range = j >= max_lane;
      break;
    case kDown:
      j = lane + b, in_range = j <= max_lane;
      break;
    case kXor:
      j = lane ^ b, in_range = j <= max_lane;
      break;
    case kIdx:
      j = min_lane | (b & ~segment_mask & 31), in_range = j <= max_lane;
      break;
  }
  return in_range ? j : lane;
}

TEST_CASE("simt: shuffles x widths x masks") {
  const unsigned masks[] = {0xffffffffu, 0x0000ffffu, 0xffff0000u,
                            0x55555555u, 0x80000001u, 0x00000010u};
  DeviceArray<int> out(32);
  int checked = 0;
  for (const Kind kind : {kIdx, kUp, kDown, kXor})
    for (const int width : {1, 2, 4, 8, 16, 32})
      for (const unsigned mask : masks)
        for (const int arg : {0, 1, 2, 3, 5, 8, 15, 16, 31}) {
          bool legal = true;  // every lane of the mask must read a lane of the mask
          for (int l = 0; l < 32; ++l)
            if (mask >> l & 1u) legal &= mask >> shfl_source(kind, l, arg, width) & 1u;
          INFO("kind " << kind << " width " << width << " mask " << mask << " arg " << arg);
          const std::string report =
              report_of(shuffle_kernel, {1, 32}, out.data(), kind, mask, arg, width);
          if (!legal) {
            CHECK_THAT(report, ContainsSubstring("shuffle from inactive lane"));
            continue;
          }
          REQUIRE(report == "");
          const std::vector<int> got = out.host();
          for (int l = 0; l < 32; ++l)
            if (mask >> l & 1u)
              REQUIRE(got[std::size_t(l)] == 100 + 7 * shfl_source(kind, l, arg, width));
          ++checked;
        }
  CHECK(checked > 400);
}

template <class T>
__global__ void shuffle_type_kernel(T* out, const T* in) {
  const T v = in[threadIdx.x];
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, v, 1);
}
template <class T>
void check_shuffle_type(T (*make)(int)) {
  std::vector<T> in(32);
  for (int i = 0; i < 32; ++i) in[std::size_t(i)] = make(i);
  DeviceArray<T> x(in), y(32);
  run(shuffle_type_kernel<T>, {1, 32}, y.data(), x.data());
  const std::vector<T> got = y.host();
  for (std::size_t i = 0; i < 32; ++i)
    CHECK(std::memcmp(&got[i], &in[i ^ 1], sizeof(T)) == 0);
}
TEST_CASE("simt: shuffles move every type of up to 8 bytes") {
  check_shuffle_type<float>([](int i) { return float(i) + 0.5f; });
  check_shuffle_type<double>([](int i) { return i + 1e-9; });
  check_shuffle_type<long long>([](int i) { return (long long)i << 40; });
  check_shuffle_type<__half>([](int i) { return __half(float(i)); });
  check_shuffle_type<__half2>([](int i) { return __half2{float(i), -float(i)}; });
  check_shuffle_type<__nv_bfloat16>([](int i) { return __nv_bfloat16(float(i)); });
}

struct Votes {
  unsigned ballot, any, all, add, min, max, bits_and, bits_or, bits_xor, match_any,
      match_all;
  int min_signed, max_signed, all_equal;
};
__global__ void vote_kernel(Votes* out, const int* in, unsigned mask) {
  const int lane = int(threadIdx.x), v = in[lane];
  if (!(mask >> lane & 1u)) return;
  Votes r;
  r.ballot = __ballot_sync(mask, v & 1);
  r.any = unsigned(__any_sync(mask, v == 9));
  r.all = unsigned(__all_sync(mask, v > -100));
  r.add = __reduce_add_sync(mask, unsigned(v));
  r.min = __reduce_min_sync(mask, unsigned(v));
  r.max = __reduce_max_sync(mask, unsigned(v));
  r.min_signed = __reduce_min_sync(mask, v);
  r.max_signed = __reduce_max_sync(mask, v);
  r.bits_and = __reduce_and_sync(mask, unsigned(v));
  r.bits_or = __reduce_or_sync(mask, unsigned(v));
  r.bits_xor = __reduce_xor_sync(mask, unsigned(v));
  r.match_any = __match_any_sync(mask, v);
  r.match_all = __match_all_sync(mask, v, &r.all_equal);
  out[lane] = r;
}

TEST_CASE("simt: votes, reductions and matches over masks") {
  const std::uint32_t masks[] = {0xffffffffu, 0x00ff00ffu, 0x80000000u, 0x00000003u};
  std::vector<int> mixed(32), equal(32, 4);
  for (int i = 0; i < 32; ++i) mixed[std::size_t(i)] = i * i % 11 - 5;
  DeviceArray<Votes> out(32);
  for (const std::vector<int>* values : {&mixed, &equal})
    for (const std::uint32_t mask : masks) {
      DeviceArray<int> in(*values);
      run(vote_kernel, {1, 32}, out.data(), in.data(), mask);
      const std::vector<Votes> got = out.host();
      Votes want{0, 0, 1, 0, ~0u, 0, ~0u, 0, 0, 0, 0, 1 << 30, -(1 << 30), 1};
      const int first = (*values)[std::size_t(std::countr_zero(mask))];
      for (int l = 0; l < 32; ++l) {
        if (!(mask >> l & 1u)) continue;
        const int v = (*values)[std::size_t(l)];
        const unsigned u = unsigned(v);
        want.ballot |= (u & 1u) << l;
        want.any |= v == 9;
        want.add += u;
        want.min = u < want.min ? u : want.min;
        want.max = u > want.max ? u : want.max;
        want.min_signed = std::min(want.min_signed, v);
        want.max_signed = std::max(want.max_signed, v);
        want.bits_and &= u;
        want.bits_or |= u;
        want.bits_xor ^= u;
        want.all_equal &= v == first;
      }
      for (int l = 0; l < 32; ++l) {
        if (!(mask >> l & 1u)) continue;
        const Votes& g = got[std::size_t(l)];
        INFO("lane " << l << " mask " << mask);
        std::uint32_t same = 0;
        for (int k = 0; k < 32; ++k)
          if ((mask >> k & 1u) && (*values)[std::size_t(k)] == (*values)[std::size_t(l)])
            same |= 1u << k;
        CHECK(g.ballot == want.ballot);
        CHECK(g.any == want.any);
        CHECK(g.all == 1);
        CHECK(g.add == want.add);
        CHECK(g.min == want.min);
        CHECK(g.max == want.max);
        CHECK(g.min_signed == want.min_signed);
        CHECK(g.max_signed == want.max_signed);
        CHECK(g.bits_and == want.bits_and);
        CHECK(g.bits_or == want.bits_or);
        CHECK(g.bits_xor == want.bits_xor);
        CHECK(g.match_any == same);
        CHECK(g.all_equal == want.all_equal);
        CHECK(g.match_all == (want.all_equal ? mask : 0u));
      }
    }
}

__global__ void barrier_votes_kernel(int* out) {
  const int t = int(threadIdx.x);
  const int count = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t < 70), none = __syncthreads_and(t < 69);
  const int any = __syncthreads_or(t == 69), nobody = __syncthreads_or(t > 69);
  out[t] = count * 10000 + all * 1000 + none * 100 + any * 10 + nobody;
}
TEST_CASE("simt: barriers that vote, in a block that is no multiple of a warp") {
  DeviceArray<int> out(70);
  run(barrier_votes_kernel, {1, 70}, out.data());
  for (const int v : out.host()) REQUIRE(v == 24 * 10000 + 1000 + 10);
}

__global__ void early_exit_kernel(int* out, int n) {
  const int t = int(threadIdx.x);
  if (t >= n) return;
  out[t] = t;
  __syncthreads();
  const int neighbour = out[(t + 1) % n];
  __syncthreads();
  out[t] = neighbour;
}
TEST_CASE("simt: threads that have returned are not waited for") {
  for (const int n : {1, 31, 32, 33, 64}) {
    DeviceArray<int> out(64);
    run(early_exit_kernel, {1, 64}, out.data(), n);
    const std::vector<int> got = out.host();
    for (int t = 0; t < n; ++t) CHECK(got[std::size_t(t)] == (t + 1) % n);
  }
}

__global__ void half_warps_kernel(float* out) {
  const float v = float(threadIdx.x);
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_sync(0x0000ffffu, v, 3);
  else
    out[threadIdx.x] = __shfl_xor_sync(0xffff0000u, v, 1);
}
TEST_CASE("simt: disjoint masks may be in different collectives") {
  DeviceArray<float> out(32);
  run(half_warps_kernel, {1, 32}, out.data());
  const std::vector<float> got = out.host();
  for (int i = 0; i < 32; ++i) CHECK(got[std::size_t(i)] == (i < 16 ? 3.0f : float(i ^ 1)));
}

__global__ void index_kernel(unsigned* out) {
  const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  __syncthreads();  // another thread in between must not disturb the built-in variables
  out[b * blockDim.x * blockDim.y * blockDim.z + t] = threadIdx.x | threadIdx.y << 4 |
                                                      threadIdx.z << 8 | blockIdx.x << 12 |
                                                      blockIdx.y << 16 | blockIdx.z << 20;
}
TEST_CASE("simt: indices of threads and blocks in three dimensions") {
  const dim3 grid(2, 3, 2), block(3, 5, 4);
  DeviceArray<unsigned> out(2 * 3 * 2 * 60);
  run(index_kernel, {grid, block}, out.data());
  const std::vector<unsigned> got = out.host();
  std::size_t i = 0;
  for (unsigned bz = 0; bz < 2; ++bz)
    for (unsigned by = 0; by < 3; ++by)
      for (unsigned bx = 0; bx < 2; ++bx)
        for (unsigned z = 0; z < 4; ++z)
          for (unsigned y = 0; y < 5; ++y)
            for (unsigned x = 0; x < 3; ++x, ++i)
              REQUIRE(got[i] == (x | y << 4 | z << 8 | bx << 12 | by << 16 | bz << 20));
}

}  // namespace
