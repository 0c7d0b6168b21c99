/// @file
/// nvcuda::wmma: matrix fragments whose layout over the lanes is not documented. Here lane
/// l holds the l-th of 32 equal parts of the row-major matrix, and a fragment holds each
/// element once (a GPU holds those of A and B twice): legal code sees no difference.
#pragma once

#include "simt/half.hpp"
#include "simt/runtime.hpp"

namespace emulator {

enum class Element { f16, bf16, f32, s8, u8, s32 };
template <class T>
inline constexpr Element kElement = Element::f32;
template <>
inline constexpr Element kElement<__half> = Element::f16;
template <>
inline constexpr Element kElement<__nv_bfloat16> = Element::bf16;
template <>
inline constexpr Element kElement<signed char> = Element::s8;
template <>
inline constexpr Element kElement<unsigned char> = Element::u8;
template <>
inline constexpr Element kElement<int> = Element::s32;

/// One fragment's part of a matrix in memory.
struct FragmentCopy {
  void* fragment;
  int rows, cols;
  std::size_t element_bytes;
  bool column_major;
};
void load_fragment(const FragmentCopy& f, const void* matrix, unsigned pitch, Location loc);
void store_fragment(const FragmentCopy& f, void* matrix, unsigned pitch, Location loc);

/// D = A B + C over whole fragments.
struct FragmentProduct {
  int m, n, k;
  Element input, output;
};
void multiply_fragments(const FragmentProduct& p, const void* a, const void* b,
                        const void* c, void* d, Location loc);

}  // namespace emulator

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

/// Shapes (M, N, K): (16, 16, 16), (32, 8, 16), (8, 32, 16).
template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(M * N == 256 && K == 16, "16x16x16, 32x8x16 or 8x32x16");
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? K : M;
  static constexpr int kCols = std::is_same_v<Use, matrix_a> ? K : N;
  static constexpr int num_elements = kRows * kCols / 32;
  T x[num_elements];
};

template <class Use, int M, int N, int K, class T, class L>
void fill_fragment(fragment<Use, M, N, K, T, L>& f, std::type_identity_t<T> v) {
  for (T& e : f.x) e = v;
}

template <class Use, int M, int N, int K, class T, class L>
void load_matrix_sync(fragment<Use, M, N, K, T, L>& f, const T* matrix, unsigned pitch,
                      SIMT_LOC) {
  using F = fragment<Use, M, N, K, T, L>;
  ::emulator::load_fragment(
      {f.x, F::kRows, F::kCols, sizeof(T), std::is_same_v<L, col_major>}, matrix, pitch,
      loc);
}
template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* matrix, unsigned pitch,
                      layout_t layout, SIMT_LOC) {
  ::emulator::load_fragment({f.x, M, N, sizeof(T), layout == mem_col_major}, matrix, pitch,
                            loc);
}
template <int M, int N, int K, class T>
void store_matrix_sync(T* matrix, const fragment<accumulator, M, N, K, T>& f,
                       unsigned pitch, layout_t layout, SIMT_LOC) {
  ::emulator::store_fragment(
      {const_cast<T*>(f.x), M, N, sizeof(T), layout == mem_col_major}, matrix, pitch, loc);
}

template <int M, int N, int K, class T, class LA, class LB, class TA>
void mma_sync(fragment<accumulator, M, N, K, T>& d,
              const fragment<matrix_a, M, N, K, TA, LA>& a,
              const fragment<matrix_b, M, N, K, TA, LB>& b,
              const fragment<accumulator, M, N, K, T>& c, SIMT_LOC) {
  ::emulator::multiply_fragments(
      {M, N, K, ::emulator::kElement<TA>, ::emulator::kElement<T>}, a.x, b.x, c.x, d.x,
      loc);
}

}  // namespace nvcuda::wmma
