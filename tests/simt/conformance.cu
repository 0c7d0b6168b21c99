// What every intrinsic that the emulator imitates returns, as text: compiled by nvcc it
// shows what a GPU does, compiled for the emulator what this project thinks that a GPU
// does. The two must be equal (tools/gpu_check.sh); the emulator's is also kept in
// conformance.txt.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "conformance_ptx.hpp"
#include "conformance_support.hpp"

namespace lab::LAB_GPU {
namespace {

// ---- shuffles, votes

struct Shuffle {
  std::uint32_t kind, mask, arg, width;
};

/// out[i * 32 + lane]: the lane that shuffle i has read.
__global__ void shuffle_kernel(const std::uint32_t* shuffles, std::uint32_t* out, int n) {
  const std::uint32_t lane = threadIdx.x;
  for (int i = 0; i < n; ++i) {
    const std::uint32_t kind = shuffles[4 * i], mask = shuffles[4 * i + 1];
    const int arg = int(shuffles[4 * i + 2]), width = int(shuffles[4 * i + 3]);
    if (mask >> lane & 1u) {
      std::uint32_t r = 0;
      if (kind == 0) r = __shfl_sync(mask, lane, arg, width);
      if (kind == 1) r = __shfl_up_sync(mask, lane, unsigned(arg), width);
      if (kind == 2) r = __shfl_down_sync(mask, lane, unsigned(arg), width);
      if (kind == 3) r = __shfl_xor_sync(mask, lane, arg, width);
      out[i * 32 + int(lane)] = r;
    }
    __syncwarp();
  }
}

/// The lane that is read; what is read from a lane outside of the mask is undefined.
int source(const Shuffle& s, int lane) {
  const int width = int(s.width), arg = int(s.arg), first = lane / width * width;
  int from = lane;
  if (s.kind == 0) from = first + arg % width;
  if (s.kind == 1) from = lane - arg;
  if (s.kind == 2) from = lane + arg;
  if (s.kind == 3) from = lane ^ arg;
  const bool inside = s.kind == 1 ? from >= first : from < first + width;
  return inside ? from : lane;
}
bool is_defined(const Shuffle& s) {
  for (int lane = 0; lane < 32; ++lane)
    if ((s.mask >> lane & 1u) && !(s.mask >> source(s, lane) & 1u)) return false;
  return true;
}

void shuffles(std::FILE* out) {
  std::vector<Shuffle> list;
  for (std::uint32_t kind = 0; kind < 4; ++kind)
    for (const std::uint32_t mask : {0xffffffffu, 0x0000ffffu, 0xf0f0f0f0u, 0x80000001u})
      for (std::uint32_t width = 1; width <= 32; width *= 2)
        for (const std::uint32_t arg : {0u, 1u, 3u, 4u, 8u, 15u, 16u, 31u})
          if (const Shuffle s{kind, mask, arg, width}; is_defined(s)) list.push_back(s);
  Words in(list.size() * 4);
  std::memcpy(in.data(), list.data(), in.size() * 4);
  Buffer shuffle_list(in), result(Words(list.size() * 32, 0xffu));
  launch(shuffle_kernel, {1, 32}, shuffle_list.data(), result.data(), int(list.size()));
  const Words& r = result.read();
  const char* const names[] = {"shfl", "shfl_up", "shfl_down", "shfl_xor"};
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Shuffle& s = list[i];
    std::fprintf(out, "%s mask %08x width %u arg %u:", names[s.kind], s.mask, s.width,
                 s.arg);
    for (int l = 0; l < 32; ++l) std::fprintf(out, "%02x", r[i * 32 + std::size_t(l)]);
    std::fprintf(out, "\n");
  }
}

constexpr int kVotes = 5;
__global__ void vote_kernel(const std::uint32_t* in, std::uint32_t* out,
                            std::uint32_t mask) {
  const int lane = int(threadIdx.x);
  if (!(mask >> lane & 1u)) return;
  const std::uint32_t v = in[lane];
  out[lane] = __ballot_sync(mask, v & 1u);
  out[32 + lane] =
      std::uint32_t(__any_sync(mask, v == 3)) | std::uint32_t(__all_sync(mask, v < 9)) << 1;
  out[64 + lane] = __match_any_sync(mask, v);
  int all = 0;
  out[96 + lane] = __match_all_sync(mask, v / 8, &all);
  out[128 + lane] = std::uint32_t(all);
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define HAS_AMPERE 1
#endif
constexpr int kReductions = 6;
__global__ void reduce_kernel(const std::uint32_t* in, std::uint32_t* out,
                              std::uint32_t mask) {
#ifdef HAS_AMPERE
  const int lane = int(threadIdx.x);
  if (!(mask >> lane & 1u)) return;
  const std::uint32_t v = in[lane];
  out[lane] = __reduce_add_sync(mask, v);
  out[32 + lane] = __reduce_min_sync(mask, v);
  out[64 + lane] = std::uint32_t(__reduce_max_sync(mask, int(v)));
  out[96 + lane] = __reduce_and_sync(mask, v);
  out[128 + lane] = __reduce_or_sync(mask, v);
  out[160 + lane] = __reduce_xor_sync(mask, v);
#endif
}
void votes(std::FILE* out) {
  Sequence sequence;
  for (const std::uint32_t mask : {0xffffffffu, 0x00ff00ffu, 0x80000001u}) {
    Words small = sequence.words(32);
    for (std::uint32_t& v : small) v %= 8;
    Buffer a(small), votes(Words(32 * kVotes));
    launch(vote_kernel, {1, 32}, a.data(), votes.data(), mask);
    print_lanes(out, "vote", votes);
    Buffer b(sequence.words(32)), reductions(Words(32 * kReductions));
    launch(reduce_kernel, {1, 32}, b.data(), reductions.data(), mask);
    print_lanes(out, "reduce", reductions);
  }
}

// ---- tensor cores

__global__ void ldmatrix_kernel(std::uint32_t* out) {
  __shared__ __align__(16) unsigned short tile[32][8];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 8; ++i) tile[t][i] = static_cast<unsigned short>(t * 8 + i);
  __syncthreads();
  std::uint32_t r[4], x1[1], x2[2];
  ldmatrix_x4(r, tile[t]);
  for (unsigned i = 0; i < 4; ++i) out[i * 32 + t] = r[i];
  ldmatrix_x4_trans(r, tile[t]);
  for (unsigned i = 0; i < 4; ++i) out[(4 + i) * 32 + t] = r[i];
  ldmatrix_x1(x1, tile[t]);
  out[8 * 32 + t] = x1[0];
  ldmatrix_x2_trans(x2, tile[t]);
  for (unsigned i = 0; i < 2; ++i) out[(9 + i) * 32 + t] = x2[i];
}

/// One multiplication of each kind; the numbers are small integers, so that sums are exact.
template <class T, int A, int B, class Multiply>
__device__ void multiply(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* out,
                         Multiply mma) {
  const unsigned t = threadIdx.x;
  std::uint32_t ra[A], rb[B];
  for (unsigned i = 0; i < A; ++i) ra[i] = a[i * 32 + t];
  for (unsigned i = 0; i < B; ++i) rb[i] = b[i * 32 + t];
  T c[4], d[4];
  for (int i = 0; i < 4; ++i) c[i] = T(int(t) * 4 + i);
  mma(d, ra, rb, c);
  for (unsigned i = 0; i < 4; ++i) out[i * 32 + t] = std::uint32_t(int(d[i]));
}
__global__ void mma_kernel(const std::uint32_t* f16, const std::uint32_t* bf16,
                           const std::uint32_t* s8, std::uint32_t* out) {
#define MULTIPLY(T, A, B, FUNCTION, IN, AT)                                              \
  multiply<T, A, B>(IN, IN + 128, out + AT * 128,                                        \
                    [](T(&d)[4], const std::uint32_t(&a)[A], const std::uint32_t(&b)[B], \
                       const T(&c)[4]) { FUNCTION(d, a, b, c); });
  MULTIPLY(float, 4, 2, mma_f16_k16, f16, 0)
  MULTIPLY(float, 4, 2, mma_bf16_k16, bf16, 1)
  MULTIPLY(int, 4, 2, mma_s8_k32, s8, 2)
  MULTIPLY(float, 2, 1, mma_f16_k8, f16, 3)
  MULTIPLY(float, 2, 1, mma_bf16_k8, bf16, 4)
  MULTIPLY(int, 2, 1, mma_s8_k16, s8, 5)
#undef MULTIPLY
}
__global__ void wmma_kernel(const __half* a, float* d) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::load_matrix_sync(fa, a, 24);
  wmma::load_matrix_sync(fb, a, 16);
  wmma::fill_fragment(fc, 5.0f);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(d, fc, 16, wmma::mem_col_major);
}
void tensor_cores(std::FILE* out) {
  Buffer matrices(Words(11 * 32));
  launch(ldmatrix_kernel, {1, 32}, matrices.data());
  print_lanes(out, "ldmatrix", matrices);
  Sequence sequence;
  Words f16(192), bf16(192);
  for (std::size_t i = 0; i < f16.size(); ++i) {
    const auto number = [&] { return float(int(sequence.next() % 15) - 7); };
    const float low = number(), high = number();
    f16[i] = to_half(low).bits | std::uint32_t(to_half(high).bits) << 16;
    bf16[i] = to_bfloat16(low).bits | std::uint32_t(to_bfloat16(high).bits) << 16;
  }
  Buffer a(f16), b(bf16), c(sequence.words(192)), products(Words(6 * 128));
  launch(mma_kernel, {1, 32}, a.data(), b.data(), c.data(), products.data());
  print_lanes(out, "mma", products);
  Buffer square(Words(256));
  launch(wmma_kernel, {1, 32}, reinterpret_cast<const __half*>(a.data()),
         reinterpret_cast<float*>(square.data()));
  print_lanes(out, "wmma", square);
}

// ---- arithmetic

constexpr int kIntegerResults = 16;
__global__ void integer_kernel(const std::uint32_t* in, std::uint32_t* out) {
  const unsigned n = blockDim.x, t = threadIdx.x;
  const std::uint32_t a = in[t], b = in[(t + 1) % n], c = in[(t + 2) % n];
  const std::uint32_t r[kIntegerResults] = {
      std::uint32_t(__dp4a(int(a), int(b), int(c))),
      __dp4a(a, b, c),
      __byte_perm(a, b, c),
      __funnelshift_l(a, b, c),
      __funnelshift_r(a, b, c),
      std::uint32_t(__popc(a)),
      std::uint32_t(__clz(int(a >> c % 32))),
      std::uint32_t(__ffs(int(a << c % 32))),
      __brev(a),
      std::uint32_t(__mulhi(int(a), int(b))),
      __umulhi(a, b),
      std::uint32_t(__float2int_rn(__uint_as_float(a))),
      std::uint32_t(__float2int_rz(__uint_as_float(b))),
      __float2uint_rn(__uint_as_float(a)),
      std::uint32_t(__float2int_rn(float(int(a)) * 0x1p-20f)),
      std::uint32_t(__float2int_rd(float(int(a)) * 0x1p-20f))};
  for (unsigned i = 0; i < kIntegerResults; ++i) out[i * n + t] = r[i];
}

constexpr int kHalfResults = 8;
template <class H, class ToHalf, class ToBits, class FromBits>
__device__ void half_results(const std::uint32_t* in, std::uint32_t* out, ToHalf narrow,
                             ToBits bits, FromBits half) {
  const unsigned n = blockDim.x, t = threadIdx.x;
  const H x = half(in[t]), y = half(in[t] >> 16), z = half(in[(t + 1) % n]);
  const std::uint32_t r[kHalfResults] = {
      bits(narrow(__uint_as_float(in[t]))),
      bits(narrow(float(int(in[t])) * 0x1p-40f)),
      bits(__hadd(x, y)),
      bits(__hmul(x, y)),
      bits(__hfma(x, y, z)),
      bits(__hmax(x, y)),
      bits(__hmin(x, y)),
      std::uint32_t(__hlt(x, y)) | std::uint32_t(__heq(x, x)) << 1};
  for (unsigned i = 0; i < kHalfResults; ++i) out[i * n + t] = r[i];
}
__global__ void half_kernel(const std::uint32_t* in, std::uint32_t* out) {
  half_results<__half>(
      in, out, [](float f) { return __float2half_rn(f); },
      [](__half h) { return std::uint32_t(__half_as_ushort(h)); },
      [](std::uint32_t b) { return __ushort_as_half(static_cast<unsigned short>(b)); });
}
__global__ void bfloat16_kernel(const std::uint32_t* in, std::uint32_t* out) {
#ifdef HAS_AMPERE
  half_results<__nv_bfloat16>(
      in, out, [](float f) { return __float2bfloat16_rn(f); },
      [](__nv_bfloat16 h) { return std::uint32_t(__bfloat16_as_ushort(h)); },
      [](std::uint32_t b) { return __ushort_as_bfloat16(static_cast<unsigned short>(b)); });
#endif
}
void arithmetic(std::FILE* out) {
  Sequence sequence;
  Words in = sequence.words(96);
  const float special[] = {0.0f,
                           -0.0f,
                           65519.996f,
                           65520.0f,
                           0x1p-25f,
                           0x1.8p-24f,
                           2049.0f,
                           2051.0f,
                           std::numeric_limits<float>::infinity(),
                           -3.3895314e38f,
                           std::numeric_limits<float>::quiet_NaN(),
                           0x1p-133f};
  std::memcpy(in.data(), special, sizeof special);
  Buffer numbers(in), integers(Words(96 * kIntegerResults)),
      halves(Words(96 * kHalfResults)), bfloats(Words(96 * kHalfResults));
  launch(integer_kernel, {1, 96}, numbers.data(), integers.data());
  print_lanes(out, "integer", integers);
  launch(half_kernel, {1, 96}, numbers.data(), halves.data());
  print_lanes(out, "half", halves);
  launch(bfloat16_kernel, {1, 96}, numbers.data(), bfloats.data());
  print_lanes(out, "bfloat16", bfloats);
}

/// The approximate functions differ in the last places: only whether they keep the error
/// that the CUDA C++ Programming Guide promises is printed.
enum Function { kExp, kLog, kExp2, kRsqrt, kDivide, kSine, kFunctions };
__global__ void function_kernel(const float* in, float* out) {
  const unsigned n = blockDim.x, t = threadIdx.x;
  const float x = in[t], positive = fabsf(x) + 0.001f;
  out[kExp * n + t] = __expf(x);
  out[kLog * n + t] = __logf(positive);
  out[kExp2 * n + t] = exp2f(x);
  out[kRsqrt * n + t] = rsqrtf(positive);
  out[kDivide * n + t] = __fdividef(x, positive);
  out[kSine * n + t] = __sinf(x / 8);
}
void functions(std::FILE* out) {
  constexpr int kN = 256;
  Words in(kN);
  for (int i = 0; i < kN; ++i) {
    const float x = float(i - kN / 2) * 0.17f;
    std::memcpy(&in[std::size_t(i)], &x, sizeof x);
  }
  Buffer numbers(in), results(Words(kN * kFunctions));
  launch(function_kernel, {1, kN}, reinterpret_cast<const float*>(numbers.data()),
         reinterpret_cast<float*>(results.data()));
  const Words& r = results.read();
  const char* const names[] = {"__expf", "__logf",     "exp2f",
                               "rsqrtf", "__fdividef", "__sinf"};
  bool good[kFunctions] = {true, true, true, true, true, true};
  for (int i = 0; i < kN; ++i) {
    float x, got[kFunctions];
    std::memcpy(&x, &in[std::size_t(i)], sizeof x);
    for (int f = 0; f < kFunctions; ++f)
      std::memcpy(&got[f], &r[std::size_t(f * kN + i)], sizeof(float));
    const double y = x, p = double(std::fabs(x) + 0.001f), ulp = 0x1p-23;
    const auto within = [](double value, double want, double relative, double absolute) {
      return std::fabs(value - want) <= relative * std::fabs(want) + absolute;
    };
    good[kExp] &=
        within(got[kExp], std::exp(y), (2 + std::floor(std::fabs(1.173 * y))) * ulp, 0);
    good[kLog] &= within(got[kLog], std::log(p), 3 * ulp, 0x1p-21);
    good[kExp2] &= within(got[kExp2], std::exp2(y), 2 * ulp, 0);
    good[kRsqrt] &= within(got[kRsqrt], 1 / std::sqrt(p), 2 * ulp, 0);
    good[kDivide] &= within(got[kDivide], y / p, 2 * ulp, 0);
    good[kSine] &= within(got[kSine], std::sin(double(x / 8)), 0, 0x1p-21);
  }
  for (int f = 0; f < kFunctions; ++f)
    std::fprintf(out, "%s %s\n", names[f],
                 good[f] ? "within the documented error" : "worse");
}

// ---- memory

__global__ void memory_kernel(const std::uint32_t* in, std::uint32_t* out,
                              unsigned* counters) {
  __shared__ __align__(16) std::uint32_t tile[2][128];
  const unsigned t = threadIdx.x;
  cp_async_16(&tile[0][t * 4], in + t * 4);
  cp_async_commit();
  cp_async_16(&tile[1][t * 4], in + t * 4, t % 3 != 0);
  cp_async_commit();
  cp_async_wait<1>();
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) out[i * 32 + t] = tile[0][127 - (i * 32 + t)];
  cp_async_wait<0>();
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) out[128 + i * 32 + t] = tile[1][i * 32 + t];
  atomicAdd(&counters[0], in[t]);
  atomicMax(reinterpret_cast<int*>(&counters[1]), int(in[t]));
  atomicMin(&counters[2], in[t]);
  atomicInc(&counters[3], 6);
  atomicDec(&counters[4], 6);
  atomicOr(&counters[5], 1u << t % 20);
  atomicXor(&counters[6], in[t]);
  atomicAnd(&counters[7], ~(1u << t % 12));
}
void memory(std::FILE* out) {
  Sequence sequence;
  Buffer in(sequence.words(128)), copies(Words(256)),
      counters(Words{7, 0, 0xffffffffu, 0, 3, 0, 0, 0xffffffffu});
  launch(memory_kernel, {1, 32}, in.data(), copies.data(), counters.data());
  print_lanes(out, "cp_async", copies);
  print(out, "atomics", counters.read().data(), 8);
}

}  // namespace

/// Prints the results of all intrinsics.
void print_conformance(std::FILE* out) {
  shuffles(out);
  votes(out);
  tensor_cores(out);
  arithmetic(out);
  functions(out);
  memory(out);
}

}  // namespace lab::LAB_GPU
