/// @file
/// CUDA C++ as a host compiler sees it: qualifiers, vector types and the built-in
/// variables. Every name here is NVIDIA's; what it means is in the CUDA C++ Programming
/// Guide, "C++ Language Extensions".
#pragma once

#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

// A block runs on one worker thread, so a thread_local is storage that its CUDA threads
// share and that other workers' blocks do not see. constinit spares GCC the guard of an
// array of
// __half, and Clang neither needs nor accepts it.
#if defined(__clang__)
#define __shared__ thread_local
#else
#define __shared__ constinit thread_local
#endif

#define SIMT_VECTOR_TYPES(T, NAME, ALIGN2, ALIGN4)                      \
  struct NAME##1 {                                                      \
    T x;                                                                \
  };                                                                    \
  struct alignas(ALIGN2) NAME##2 {                                      \
    T x, y;                                                             \
  };                                                                    \
  struct NAME##3 {                                                      \
    T x, y, z;                                                          \
  };                                                                    \
  struct alignas(ALIGN4) NAME##4 {                                      \
    T x, y, z, w;                                                       \
  };                                                                    \
  constexpr NAME##1 make_##NAME##1(T x) { return {x}; }                 \
  constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }         \
  constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SIMT_VECTOR_TYPES(signed char, char, 2, 4)
SIMT_VECTOR_TYPES(unsigned char, uchar, 2, 4)
SIMT_VECTOR_TYPES(short, short, 4, 8)
SIMT_VECTOR_TYPES(unsigned short, ushort, 4, 8)
SIMT_VECTOR_TYPES(int, int, 8, 16)
SIMT_VECTOR_TYPES(unsigned, uint, 8, 16)
SIMT_VECTOR_TYPES(long long, longlong, 16, 16)
SIMT_VECTOR_TYPES(unsigned long long, ulonglong, 16, 16)
SIMT_VECTOR_TYPES(float, float, 8, 16)
SIMT_VECTOR_TYPES(double, double, 16, 16)
#undef SIMT_VECTOR_TYPES

inline namespace emulated {  // not the symbols of nvcc's type, which the program may hold
                             // too
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
}  // namespace emulated

// Real variables, set whenever another CUDA thread continues, so that a debugger prints
// them.
inline thread_local uint3 threadIdx{};
inline thread_local uint3 blockIdx{};
inline thread_local dim3 blockDim{};
inline thread_local dim3 gridDim{};
inline constexpr int warpSize = 32;
