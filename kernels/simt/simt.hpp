// simt.hpp - "CUDA on a CPU": enough of the CUDA C++ dialect to compile a .cu file with g++/clang++ and
// EXECUTE it with CUDA semantics, one fiber per CUDA thread, one thread block at a time per worker thread.
//
// Goal: correctness checking, not speed. A barrier really waits, a shuffle really exchanges, and the mistakes that
// a GPU answers with a hang or silent garbage (divergent barriers, partial-mask shuffles, out-of-bounds shared
// memory, unfinished cp.async, host pointers in kernels) become error messages with file and line.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

// ------------------------------------------------------------------ language: qualifiers and builtin types
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// A block runs on ONE worker thread, so a thread_local IS block-shared storage: all fibers of the block see it,
// other workers' blocks do not. (g++ needs -fno-extern-tls-init for `extern __shared__ T x[];`.)
#if defined(__clang__)
#define __shared__ thread_local
#else
#define __shared__ constinit thread_local     // constinit: no init guard for arrays of half
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
#define SIMT_VEC(T, N)                                                                                      \
    struct alignas(2 * sizeof(T)) N##2 { T x, y; };                                                         \
    struct alignas(sizeof(T) * (sizeof(T) >= 8 ? 2 : 4)) N##4 { T x, y, z, w; };                            \
    inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                                    \
    inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SIMT_VEC(float, float)
SIMT_VEC(int, int)
SIMT_VEC(unsigned, uint)
SIMT_VEC(signed char, char)
SIMT_VEC(unsigned char, uchar)
#undef SIMT_VEC

inline thread_local uint3 threadIdx{};      // set at every fiber switch; real variables, so a debugger prints them
inline thread_local uint3 blockIdx{};
inline thread_local dim3 blockDim{};
inline thread_local dim3 gridDim{};
inline constexpr int warpSize = 32;

namespace emulator {

// Call site of a collective. A constructor CALL in the default argument makes g++ and clang evaluate the builtins at the
// caller (aggregate initialisation would yield this header's line; std::source_location needs clang 16).
struct Loc { const char* file = ""; unsigned line = 0; constexpr Loc() = default; constexpr Loc(const char* f, unsigned l) : file(f), line(l) {} };

enum class Order { forward, reverse, random, greedy };   // scheduling order of the threads of a block (greedy: a warp runs ahead)
struct Config {
    int workers = 1;                         // OS threads executing blocks
    Order order = Order::forward;
    uint64_t seed = 1;
    size_t stack_bytes = 64 * 1024;
    bool poison = true;                      // fill fresh device/shared memory with 0xFF (= NaN in every float type)
    int timeout_s = 600;                     // watchdog per launch
    bool abort_on_error = false;             // else: cudaGetLastError() + ::emulator::last_report()
    int max_threads_per_block = 1024;        // device profile (sm_80)
    size_t max_static_smem = 48 * 1024, max_dynamic_smem = 163 * 1024;
};
Config& config();
const std::string& last_report();            // text of the last execution error
struct Counters { uint64_t launches, blocks, threads, switches, barriers, warp_ops; };
Counters& counters();

// ---- runtime entry points (simt.cpp) ---------------------------------------------------------------------
enum class BlockOp { sync, count, all, any };
int  block_barrier(BlockOp op, int pred, Loc loc);

struct Lane;                                  // one CUDA thread
struct WarpCall {                             // what a lane brings to a warp collective
    uint64_t in = 0, out = 0; int arg = 0, width = 32; void* p[4] = {};
};
// Called once, by the last lane to arrive, with the calls of all participating lanes (null = not in mask).
using Resolver = void (*)(WarpCall* (&lane)[32], uint32_t mask);
void warp_collective(uint32_t mask, const char* name, Resolver r, WarpCall& c, Loc loc, bool same_site);
uint32_t warp_live_mask();
int lane_id();
[[noreturn]] void device_fail(const char* kind, const std::string& msg);
void yield();                                 // let others run (spin loops)

struct Launch {
    dim3 grid, block; size_t smem; const void* kernel; void (*thunk)(const void*); const void* args;
};
int run(const Launch&);                       // returns a cudaError_t value
bool is_device_pointer(const void*);
bool check_pointer_arg(const void* p, int index);
size_t& dynamic_smem_limit(const void* kernel);   // cudaFuncSetAttribute

using SmemFn = unsigned char* (*)();
bool set_dynamic_smem(SmemFn, size_t capacity);
inline constexpr size_t kDynSmemCapacity = 227 * 1024;

void note_read(const void* p, size_t n);       // trace flavour: a collective reads memory on behalf of this lane
void cp_async(void* dst, const void* src, size_t n, size_t src_n);
void cp_async_commit();
void cp_async_wait(int pending);

template <class T> inline uint64_t to_bits(T v) { static_assert(sizeof(T) <= 8); uint64_t b = 0; std::memcpy(&b, &v, sizeof v); return b; }
template <class T> inline T from_bits(uint64_t b) { T v; std::memcpy(&v, &b, sizeof v); return v; }
}  // namespace emulator

// Declares the block's dynamic shared memory once per namespace; kernels then write plain CUDA:
//     extern __shared__ __align__(16) unsigned char NAME[];
#define SIMT_DYNAMIC_SMEM(NAME)                                                                              \
    alignas(1024) inline thread_local unsigned char NAME[::emulator::kDynSmemCapacity];                            \
    inline const bool NAME##_registered = ::emulator::set_dynamic_smem([]() -> unsigned char* { return NAME; }, sizeof NAME);

// ------------------------------------------------------------------ synchronisation and warp primitives
#define SIMT_LOC ::emulator::Loc loc = ::emulator::Loc(__builtin_FILE(), (unsigned)__builtin_LINE())
inline void __syncthreads(SIMT_LOC) { ::emulator::block_barrier(::emulator::BlockOp::sync, 0, loc); }
inline int __syncthreads_count(int p, SIMT_LOC) { return ::emulator::block_barrier(::emulator::BlockOp::count, p, loc); }
inline int __syncthreads_and(int p, SIMT_LOC) { return ::emulator::block_barrier(::emulator::BlockOp::all, p, loc); }
inline int __syncthreads_or(int p, SIMT_LOC) { return ::emulator::block_barrier(::emulator::BlockOp::any, p, loc); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) { ::emulator::yield(); }

namespace emulator {
void resolve_sync(WarpCall* (&)[32], uint32_t);
void resolve_shfl_idx(WarpCall* (&)[32], uint32_t);
void resolve_shfl_up(WarpCall* (&)[32], uint32_t);
void resolve_shfl_down(WarpCall* (&)[32], uint32_t);
void resolve_shfl_xor(WarpCall* (&)[32], uint32_t);
void resolve_ballot(WarpCall* (&)[32], uint32_t);
void resolve_reduce_add(WarpCall* (&)[32], uint32_t);
template <class T> inline T shfl(const char* n, Resolver r, unsigned mask, T v, int arg, int width, Loc loc) {
    WarpCall c; c.in = to_bits(v); c.arg = arg; c.width = width;
    warp_collective(mask, n, r, c, loc, true);
    return from_bits<T>(c.out);
}
}  // namespace emulator
inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_LOC) { ::emulator::WarpCall c; ::emulator::warp_collective(mask, "__syncwarp", ::emulator::resolve_sync, c, loc, false); }
template <class T> inline T __shfl_sync(unsigned m, T v, int src, int width = 32, SIMT_LOC) { return ::emulator::shfl("__shfl_sync", ::emulator::resolve_shfl_idx, m, v, src, width, loc); }
template <class T> inline T __shfl_up_sync(unsigned m, T v, unsigned d, int width = 32, SIMT_LOC) { return ::emulator::shfl("__shfl_up_sync", ::emulator::resolve_shfl_up, m, v, (int)d, width, loc); }
template <class T> inline T __shfl_down_sync(unsigned m, T v, unsigned d, int width = 32, SIMT_LOC) { return ::emulator::shfl("__shfl_down_sync", ::emulator::resolve_shfl_down, m, v, (int)d, width, loc); }
template <class T> inline T __shfl_xor_sync(unsigned m, T v, int x, int width = 32, SIMT_LOC) { return ::emulator::shfl("__shfl_xor_sync", ::emulator::resolve_shfl_xor, m, v, x, width, loc); }
inline unsigned __ballot_sync(unsigned m, int p, SIMT_LOC) { return ::emulator::shfl<unsigned>("__ballot_sync", ::emulator::resolve_ballot, m, p != 0, 0, 32, loc); }
inline int __any_sync(unsigned m, int p, SIMT_LOC) { return __ballot_sync(m, p, loc) != 0; }
inline int __all_sync(unsigned m, int p, SIMT_LOC) { return __ballot_sync(m, p, loc) == (m & ::emulator::warp_live_mask()); }
inline unsigned __reduce_add_sync(unsigned m, unsigned v, SIMT_LOC) { return ::emulator::shfl<unsigned>("__reduce_add_sync", ::emulator::resolve_reduce_add, m, v, 0, 32, loc); }

// ------------------------------------------------------------------ arithmetic intrinsics
using std::max; using std::min;
inline float max(float a, float b) { return std::fmax(a, b); }
inline float min(float a, float b) { return std::fmin(a, b); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __expf(float x) noexcept { return std::exp2(x * 1.4426950408889634f); }     // the GPU's ex2.approx(x*log2e)
inline float __logf(float x) noexcept { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline int __float2int_rn(float x) { return (int)std::nearbyint(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero((unsigned)x); }
inline int __ffs(int x) { return x ? std::countr_zero((unsigned)x) + 1 : 0; }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
template <class T> inline T __ldg(const T* p) { return *p; }
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += (int)(int8_t)(a >> 8 * i) * (int)(int8_t)(b >> 8 * i);
    return c;
}
template <class T> inline T atomicAdd(T* p, T v) {
    if constexpr (std::is_integral_v<T>) return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
    else { T old, want; __atomic_load(p, &old, __ATOMIC_RELAXED); do want = old + v; while (!__atomic_compare_exchange(p, &old, &want, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); return old; }
}
template <class T> inline T atomicMax(T* p, T v) {
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < v && !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return old;
}
template <class T> inline T atomicCAS(T* p, T cmp, T v) {
    T want = cmp; bool ok = __atomic_compare_exchange_n(p, &want, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (!ok) ::emulator::yield();                   // a spin lock must not starve the fiber that holds the lock
    return ok ? cmp : want;
}
template <class T> inline T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }

// ------------------------------------------------------------------ __half / __nv_bfloat16
namespace emulator {
inline uint16_t f32_to_f16(float f) {         // round to nearest even, overflow -> inf, NaN -> 0x7fff
    uint32_t x = std::bit_cast<uint32_t>(f), s = (x >> 16) & 0x8000, a = x & 0x7fffffff;
    if (a > 0x7f800000) return 0x7fff;
    if (a >= 0x477ff000) return (uint16_t)(s | 0x7c00);
    if (a < 0x38800000) {                     // subnormal half: let the FPU round at the right bit
        float d = std::bit_cast<float>(a) + 0.5f;
        return (uint16_t)(s | (std::bit_cast<uint32_t>(d) - 0x3f000000));
    }
    return (uint16_t)(s | ((a + 0xfff + ((a >> 13) & 1) - 0x38000000) >> 13));
}
inline float f16_to_f32(uint16_t h) {
    uint32_t s = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff;
    if (a >= 0x7c00) return std::bit_cast<float>(s | 0x7f800000 | (a & 0x3ff) << 13);
    if (a < 0x400) { float v = (float)a * 0x1p-24f; return s ? -v : v; }
    return std::bit_cast<float>(s | ((a << 13) + 0x38000000));
}
inline uint16_t f32_to_bf16(float f) {
    uint32_t x = std::bit_cast<uint32_t>(f);
    if ((x & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (uint16_t)((x + 0x7fff + ((x >> 16) & 1)) >> 16);
}
inline float bf16_to_f32(uint16_t b) { return std::bit_cast<float>((uint32_t)b << 16); }
}  // namespace emulator
struct alignas(2) __half {
    uint16_t bits;
    __half() = default;
    __half(float f) : bits(::emulator::f32_to_f16(f)) {}
    operator float() const { return ::emulator::f16_to_f32(bits); }
};
struct alignas(2) __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) : bits(::emulator::f32_to_bf16(f)) {}
    operator float() const { return ::emulator::bf16_to_f32(bits); }
};
using half = __half;
using nv_bfloat16 = __nv_bfloat16;
struct alignas(4) __half2 { __half x, y; };
using half2 = __half2;
inline float __half2float(__half h) { return h; }
inline __half __float2half(float f) { return f; }
inline __half __float2half_rn(float f) { return f; }
inline float __bfloat162float(__nv_bfloat16 h) { return h; }
inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
inline float2 __half22float2(__half2 h) { return {(float)h.x, (float)h.y}; }
inline __half2 __floats2half2_rn(float a, float b) { return {a, b}; }

// ------------------------------------------------------------------ cp.async (cuda_pipeline.h)
// The copy is performed at the WAIT, not at the issue; until then the destination holds NaN poison. That is the
// most hostile schedule the hardware is allowed, so a missing wait_prior/barrier shows up as NaN.
inline void __pipeline_memcpy_async(void* dst, const void* src, size_t n, size_t zfill = 0) { ::emulator::cp_async(dst, src, n, n - zfill); }
inline void __pipeline_commit() { ::emulator::cp_async_commit(); }
inline void __pipeline_wait_prior(int n) { ::emulator::cp_async_wait(n); }

// ------------------------------------------------------------------ nvcuda::wmma (16x16x16)
namespace nvcuda::wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
    static_assert(M == 16 && N == 16 && K == 16, "emulated shape");
    static constexpr int num_elements = 8;    // element i of lane l is matrix entry 8*l + i (row-major)
    T x[num_elements];
};
template <class F, class T> inline void fill_fragment(F& f, T v) { for (auto& e : f.x) e = v; }
template <class Use, class T, class L>
inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, L>& f, const T* p, unsigned ldm, SIMT_LOC) {
    ::emulator::WarpCall c; ::emulator::warp_collective(~0u, "load_matrix_sync", ::emulator::resolve_sync, c, loc, true);
    for (int i = 0; i < 8; ++i) {
        int e = ::emulator::lane_id() * 8 + i, r = e / 16, q = e % 16;
        f.x[i] = std::is_same_v<L, col_major> ? p[q * ldm + r] : p[r * ldm + q];
    }
}
template <class T>
inline void store_matrix_sync(T* p, const fragment<accumulator, 16, 16, 16, T>& f, unsigned ldm, layout_t lay, SIMT_LOC) {
    ::emulator::WarpCall c; ::emulator::warp_collective(~0u, "store_matrix_sync", ::emulator::resolve_sync, c, loc, true);
    for (int i = 0; i < 8; ++i) {
        int e = ::emulator::lane_id() * 8 + i, r = e / 16, q = e % 16;
        (lay == mem_col_major ? p[q * ldm + r] : p[r * ldm + q]) = f.x[i];
    }
}
template <class T, class LA, class LB, class TA>
inline void mma_sync(fragment<accumulator, 16, 16, 16, T>& d, const fragment<matrix_a, 16, 16, 16, TA, LA>& a,
                     const fragment<matrix_b, 16, 16, 16, TA, LB>& b, const fragment<accumulator, 16, 16, 16, T>& c0, SIMT_LOC) {
    ::emulator::WarpCall c;
    c.p[0] = (void*)a.x; c.p[1] = (void*)b.x; c.p[2] = (void*)c0.x; c.p[3] = (void*)d.x;
    ::emulator::warp_collective(~0u, "mma_sync", [](::emulator::WarpCall* (&l)[32], uint32_t) {
        float A[16][16], B[16][16];
        for (int e = 0; e < 256; ++e) A[e / 16][e % 16] = (float)((TA*)l[e / 8]->p[0])[e % 8], B[e / 16][e % 16] = (float)((TA*)l[e / 8]->p[1])[e % 8];
        for (int e = 0; e < 256; ++e) {
            float s = (float)((T*)l[e / 8]->p[2])[e % 8];
            for (int k = 0; k < 16; ++k) s += A[e / 16][k] * B[k][e % 16];
            ((T*)l[e / 8]->p[3])[e % 8] = s;
        }
    }, c, loc, true);
}
}  // namespace nvcuda::wmma

// ------------------------------------------------------------------ PTX mma / ldmatrix with the DOCUMENTED layouts
namespace emulator {
// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 : D(16x8) = A(16x16) * B(16x8) + C
inline void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const float (&c0)[4], SIMT_LOC) {
    WarpCall c; c.p[0] = (void*)a; c.p[1] = (void*)b; c.p[2] = (void*)c0; c.p[3] = d;
    warp_collective(~0u, "mma.m16n8k16", [](WarpCall* (&l)[32], uint32_t) {
        float A[16][16], B[16][8], C[16][8];
        auto h = [](void* p, int reg, int hi) { return f16_to_f32((uint16_t)(((uint32_t*)p)[reg] >> 16 * hi)); };
        for (int t = 0; t < 32; ++t) {
            int g = t >> 2, q = t & 3;        // groupID, threadID_in_group (PTX ISA names)
            for (int i = 0; i < 8; ++i) A[g + ((i & 2) ? 8 : 0)][q * 2 + (i & 1) + (i >= 4 ? 8 : 0)] = h(l[t]->p[0], i / 2, i & 1);
            for (int i = 0; i < 4; ++i) B[q * 2 + (i & 1) + (i >= 2 ? 8 : 0)][g] = h(l[t]->p[1], i / 2, i & 1);
            for (int i = 0; i < 4; ++i) C[g + (i >= 2 ? 8 : 0)][q * 2 + (i & 1)] = ((float*)l[t]->p[2])[i];
        }
        for (auto m = 0; m < 16; ++m) for (int n = 0; n < 8; ++n) for (int k = 0; k < 16; ++k) C[m][n] += A[m][k] * B[k][n];
        for (int t = 0; t < 32; ++t) for (int i = 0; i < 4; ++i) ((float*)l[t]->p[3])[i] = C[(t >> 2) + (i >= 2 ? 8 : 0)][(t & 3) * 2 + (i & 1)];
    }, c, loc, true);
}
// ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16 : lane 8i+r supplies the address of row r of 8x8 matrix i
template <bool Trans> inline void ldmatrix_x4(uint32_t (&r)[4], const void* row, SIMT_LOC) {
    WarpCall c; c.p[0] = (void*)row; c.p[1] = r; note_read(row, 16);
    warp_collective(~0u, "ldmatrix.x4", [](WarpCall* (&l)[32], uint32_t) {
        for (int t = 0; t < 32; ++t) for (int i = 0; i < 4; ++i) {
            auto at = [&](int rr, int cc) { return (uint32_t)((const uint16_t*)l[8 * i + rr]->p[0])[cc]; };
            uint32_t lo = Trans ? at((t & 3) * 2, t >> 2) : at(t >> 2, (t & 3) * 2), hi = Trans ? at((t & 3) * 2 + 1, t >> 2) : at(t >> 2, (t & 3) * 2 + 1);
            ((uint32_t*)l[t]->p[1])[i] = lo | hi << 16;
        }
    }, c, loc, true);
}
}  // namespace emulator

// ------------------------------------------------------------------ host API (synchronous; one device)
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
using cudaStream_t = struct CUstream_st*;
cudaError_t simt_malloc(void** p, size_t n);
template <class T> inline cudaError_t cudaMalloc(T** p, size_t n) { return simt_malloc((void**)p, n); }
cudaError_t cudaFree(void* p);
cudaError_t cudaMemcpy(void* dst, const void* src, size_t n, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* p, int v, size_t n);
inline cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t = {}) { return cudaMemcpy(d, s, n, k); }
cudaError_t cudaGetLastError();
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t);
template <class K> inline cudaError_t cudaFuncSetAttribute(K* kernel, cudaFuncAttribute, int v) {
    if ((size_t)v > ::emulator::config().max_dynamic_smem) return cudaErrorInvalidValue;
    ::emulator::dynamic_smem_limit((const void*)kernel) = (size_t)v; return cudaSuccess;
}

namespace emulator {
template <class... P> struct Packed {        // kernel parameters, copied per CUDA thread like the real param space
    void (*kernel)(P...); std::tuple<P...> args;
    static void call(const void* self) { auto& s = *static_cast<const Packed*>(self); std::apply(s.kernel, s.args); }
};
template <class... P, class... A> int launch(void (*kernel)(P...), dim3 g, dim3 b, size_t smem, A&&... a) {
    Packed<P...> pk{kernel, std::tuple<P...>(static_cast<P>(std::forward<A>(a))...)};
    int i = 0; bool ok = true;
    std::apply([&](auto&... v) { ((ok = [&] { if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(v)>>) return check_pointer_arg((const void*)v, i++); else return i++, true; }() && ok), ...); }, pk.args);
    return run({g, b, smem, (const void*)kernel, &Packed<P...>::call, &pk});
}
}  // namespace emulator

// Bootstrap of the rest of the host API (synchronous).
struct cudaDeviceProp { char name[256] = "simt"; int multiProcessorCount = 1; int major = 8, minor = 0; };
inline cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) { *p = {}; return cudaSuccess; }
template <class T> cudaError_t cudaMallocAsync(T** p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }
template <class T> cudaError_t cudaMallocHost(T** p, size_t n) { *p = static_cast<T*>(std::malloc(n ? n : 1)); return cudaSuccess; }
inline cudaError_t cudaFreeHost(void* p) { std::free(p); return cudaSuccess; }
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { *s = nullptr; return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
