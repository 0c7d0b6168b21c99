/// @file
/// Instructions that the conformance program executes and cuda/ptx.hpp has no use for.
#pragma once

#include "cuda/compat.hpp"

#ifdef __CUDACC__

// D = A B + C with 4, 2 registers of A, 2, 1 of B.
#define MMA_4_2(NAME, PTX, T, R)                                                      \
  __device__ inline void NAME(T(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2], \
                              const T(&c)[4]) {                                       \
    asm volatile("mma.sync.aligned." PTX                                              \
                 " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "                           \
                 "{%10,%11,%12,%13};\n"                                               \
                 : "=" R(d[0]), "=" R(d[1]), "=" R(d[2]), "=" R(d[3])                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),  \
                   R(c[0]), R(c[1]), R(c[2]), R(c[3]));                               \
  }
#define MMA_2_1(NAME, PTX, T, R)                                                         \
  __device__ inline void NAME(T(&d)[4], const uint32_t(&a)[2], const uint32_t(&b)[1],    \
                              const T(&c)[4]) {                                          \
    asm volatile("mma.sync.aligned." PTX                                                 \
                 " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};\n"                      \
                 : "=" R(d[0]), "=" R(d[1]), "=" R(d[2]), "=" R(d[3])                    \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), R(c[0]), R(c[1]), R(c[2]), R(c[3])); \
  }
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
MMA_4_2(mma_f16_k16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
MMA_4_2(mma_bf16_k16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
MMA_4_2(mma_s8_k32, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")
MMA_2_1(mma_f16_k8, "m16n8k8.row.col.f32.f16.f16.f32", float, "f")
MMA_2_1(mma_bf16_k8, "m16n8k8.row.col.f32.bf16.bf16.f32", float, "f")
MMA_2_1(mma_s8_k16, "m16n8k16.row.col.s32.s8.s8.s32", int, "r")
#else  // Turing has none of them; the program says so instead of running
template <class T, int A, int B>
__device__ void no_mma(T (&d)[4], const uint32_t (&)[A], const uint32_t (&)[B],
                       const T (&)[4]) {
  __trap();
}
#define mma_f16_k16 no_mma
#define mma_bf16_k16 no_mma
#define mma_s8_k32 no_mma
#define mma_f16_k8 no_mma
#define mma_bf16_k8 no_mma
#define mma_s8_k16 no_mma
#endif

__device__ inline void ldmatrix_x1(uint32_t (&r)[1], const void* row) {
  const auto s = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\n"
               : "=r"(r[0])
               : "r"(s));
}
__device__ inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
  const auto s = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(s));
}

#else

#define mma_f16_k16 ::emulator::mma_m16n8k16_f16
#define mma_bf16_k16 ::emulator::mma_m16n8k16_bf16
#define mma_s8_k32 ::emulator::mma_m16n8k32_s8
#define mma_f16_k8 ::emulator::mma_m16n8k8_f16
#define mma_bf16_k8 ::emulator::mma_m16n8k8_bf16
#define mma_s8_k16 ::emulator::mma_m16n8k16_s8
inline void ldmatrix_x1(uint32_t (&r)[1], const void* row, SIMT_LOC) {
  ::emulator::ldmatrix_x1<false>(r, row, loc);
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row, SIMT_LOC) {
  ::emulator::ldmatrix_x2<true>(r, row, loc);
}

#endif
