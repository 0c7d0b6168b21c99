// ldmatrix, mma and wmma. Fragments are filled and read through layout tables typed in from
// the figures of the PTX ISA (row and column of each element of each lane).
#include <random>

#include "support.hpp"

namespace {

struct Place {
  int row, col;
};

// m16n8k16, 16-bit: a0..a7, b0..b3, c0..c3
Place a_16(int lane, int i) {
  static const int row[] = {0, 0, 8, 8, 0, 0, 8, 8}, col[] = {0, 1, 0, 1, 8, 9, 8, 9};
  return {lane / 4 + row[i], lane % 4 * 2 + col[i]};
}
Place b_16(int lane, int i) {
  static const int row[] = {0, 1, 8, 9};
  return {lane % 4 * 2 + row[i], lane / 4};
}
// m16n8k32, 8-bit: a0..a15, b0..b7
Place a_8(int lane, int i) {
  static const int row[] = {0, 8, 0, 8}, col[] = {0, 0, 16, 16};
  return {lane / 4 + row[i / 4], lane % 4 * 4 + i % 4 + col[i / 4]};
}
Place b_8(int lane, int i) { return {lane % 4 * 4 + i % 4 + i / 4 * 16, lane / 4}; }
Place c_place(int lane, int i) {
  static const int row[] = {0, 0, 8, 8}, col[] = {0, 1, 0, 1};
  return {lane / 4 + row[i], lane % 4 * 2 + col[i]};
}

enum class Input { f16, bf16, s8 };

__global__ void mma_kernel(Input input, int k, const std::uint32_t* a,
                           const std::uint32_t* b, const float* c, float* d, const int* ci,
                           int* di) {
  const unsigned t = threadIdx.x;
  std::uint32_t a2[2] = {a[t * 4], a[t * 4 + 1]}, b1[1] = {b[t * 2]};
  std::uint32_t a4[4] = {a[t * 4], a[t * 4 + 1], a[t * 4 + 2], a[t * 4 + 3]};
  std::uint32_t b2[2] = {b[t * 2], b[t * 2 + 1]};
  float cf[4], df[4];
  int cs[4], ds[4];
  for (int i = 0; i < 4; ++i) {
    cf[i] = c[t * 4 + i];
    cs[i] = ci[t * 4 + i];
  }
  if (input == Input::s8) {
    if (k == 16) emulator::mma_m16n8k16_s8(ds, a2, b1, cs);
    if (k == 32) emulator::mma_m16n8k32_s8(ds, a4, b2, cs);
    for (int i = 0; i < 4; ++i) di[t * 4 + i] = ds[i];
    return;
  }
  if (input == Input::f16 && k == 8) emulator::mma_m16n8k8_f16(df, a2, b1, cf);
  if (input == Input::bf16 && k == 8) emulator::mma_m16n8k8_bf16(df, a2, b1, cf);
  if (input == Input::f16 && k == 16) emulator::mma_m16n8k16_f16(df, a4, b2, cf);
  if (input == Input::bf16 && k == 16) emulator::mma_m16n8k16_bf16(df, a4, b2, cf);
  for (int i = 0; i < 4; ++i) d[t * 4 + i] = df[i];
}

/// Small integers: every sum is exact, so that the order of summation does not matter.
void check_mma(Input input, int k) {
  std::mt19937 random(unsigned(k) + 17);
  std::vector<int> a(16 * 32), b(32 * 8), c(16 * 8);
  const int span = input == Input::s8 ? 255 : 15;
  for (int& v : a) v = int(random() % unsigned(span)) - span / 2;
  for (int& v : b) v = int(random() % unsigned(span)) - span / 2;
  for (int& v : c) v = int(random() % 200) - 100;
  const int per = input == Input::s8 ? 4 : 2, a_n = 16 * k / 32, b_n = 8 * k / 32;
  const auto encode = [&](int v) -> std::uint32_t {
    if (input == Input::s8) return std::uint8_t(v);
    return input == Input::f16 ? __half_as_ushort(__float2half(float(v)))
                               : __bfloat16_as_ushort(__float2bfloat16(float(v)));
  };
  std::vector<std::uint32_t> ra(32 * 4), rb(32 * 2);
  std::vector<float> rc(32 * 4);
  std::vector<int> rci(32 * 4);
  const unsigned width = 32 / unsigned(per);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < a_n; ++i) {
      const Place p = input == Input::s8 ? a_8(lane, i) : a_16(lane, i);
      ra[std::size_t(lane * 4 + i / per)] |= encode(a[std::size_t(p.row * k + p.col)])
                                             << width * unsigned(i % per);
    }
    for (int i = 0; i < b_n; ++i) {
      const Place p = input == Input::s8 ? b_8(lane, i) : b_16(lane, i);
      rb[std::size_t(lane * 2 + i / per)] |= encode(b[std::size_t(p.row * 8 + p.col)])
                                             << width * unsigned(i % per);
    }
    for (int i = 0; i < 4; ++i) {
      const Place p = c_place(lane, i);
      rci[std::size_t(lane * 4 + i)] = c[std::size_t(p.row * 8 + p.col)];
      rc[std::size_t(lane * 4 + i)] = float(c[std::size_t(p.row * 8 + p.col)]);
    }
  }
  DeviceArray<std::uint32_t> da(ra), db(rb);
  DeviceArray<float> dc(rc), dd(128);
  DeviceArray<int> dci(rci), ddi(128);
  run(mma_kernel, {1, 32}, input, k, da.data(), db.data(), dc.data(), dd.data(), dci.data(),
      ddi.data());
  const std::vector<int> as_int = input == Input::s8 ? ddi.host() : std::vector<int>();
  const std::vector<float> as_float = input == Input::s8 ? std::vector<float>() : dd.host();
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const Place p = c_place(lane, i);
      int want = c[std::size_t(p.row * 8 + p.col)];
      for (int x = 0; x < k; ++x)
        want += a[std::size_t(p.row * k + x)] * b[std::size_t(x * 8 + p.col)];
      const auto at = std::size_t(lane * 4 + i);
      INFO("k " << k << " lane " << lane << " element " << i);
      if (input == Input::s8)
        REQUIRE(as_int[at] == want);
      else
        REQUIRE(as_float[at] == float(want));
    }
}

TEST_CASE("simt: mma against a plain matrix product") {
  check_mma(Input::f16, 8);
  check_mma(Input::bf16, 8);
  check_mma(Input::f16, 16);
  check_mma(Input::bf16, 16);
  check_mma(Input::s8, 16);
  check_mma(Input::s8, 32);
}

__global__ void mma_wrap_kernel(int* out) {
  const std::uint32_t a[4] = {0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u},
                      b[2] = {0x80808080u, 0x80808080u};
  const int c[4] = {2147483647, 0, 0, 0};
  int d[4];
  emulator::mma_m16n8k32_s8(d, a, b, c);
  if (threadIdx.x == 0) out[0] = d[0], out[1] = d[1];
}
TEST_CASE("simt: mma of extreme int8 wraps around") {
  DeviceArray<int> out(2);
  run(mma_wrap_kernel, {1, 32}, out.data());
  CHECK(out.host()[0] == int(2147483647u + 32u * 128 * 128));
  CHECK(out.host()[1] == 32 * 128 * 128);
}

template <int Count, bool Transposed>
__global__ void ldmatrix_kernel(std::uint32_t* out) {
  __shared__ __align__(16) unsigned short tile[32][8];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 8; ++i) tile[t][i] = static_cast<unsigned short>(t * 8 + i);
  __syncthreads();
  std::uint32_t r[Count];
  const void* row = t < 8 * Count ? &tile[t][0] : nullptr;  // the other lanes' are not used
  if constexpr (Count == 1) emulator::ldmatrix_x1<Transposed>(r, row);
  if constexpr (Count == 2) emulator::ldmatrix_x2<Transposed>(r, row);
  if constexpr (Count == 4) emulator::ldmatrix_x4<Transposed>(r, row);
  for (int i = 0; i < Count; ++i) out[t * Count + unsigned(i)] = r[i];
}
template <int Count, bool Transposed>
void check_ldmatrix() {
  DeviceArray<std::uint32_t> out(32 * Count);
  run(ldmatrix_kernel<Count, Transposed>, {1, 32}, out.data());
  const std::vector<std::uint32_t> got = out.host();
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned m = 0; m < Count; ++m) {
      // Thread 4r + c of the figure holds elements (r, 2c) and (r, 2c + 1).
      const unsigned r = lane / 4, c = lane % 4 * 2;
      const unsigned first = Transposed ? c * 8 + r : r * 8 + c;
      const unsigned second = Transposed ? (c + 1) * 8 + r : r * 8 + c + 1;
      REQUIRE(got[lane * Count + m] == ((m * 64 + first) | (m * 64 + second) << 16));
    }
}
TEST_CASE("simt: ldmatrix of 1, 2 and 4 matrices, straight and transposed") {
  check_ldmatrix<1, false>();
  check_ldmatrix<2, false>();
  check_ldmatrix<4, false>();
  check_ldmatrix<1, true>();
  check_ldmatrix<2, true>();
  check_ldmatrix<4, true>();
}

using namespace nvcuda;
template <int M, int N, class T, class Sum, class LA, class LB>
__global__ void wmma_kernel(const T* a, const T* b, const Sum* c, Sum* d,
                            bool col_major_out) {
  wmma::fragment<wmma::matrix_a, M, N, 16, T, LA> fa;
  wmma::fragment<wmma::matrix_b, M, N, 16, T, LB> fb;
  wmma::fragment<wmma::accumulator, M, N, 16, Sum> fc;
  wmma::load_matrix_sync(fa, a, std::is_same_v<LA, wmma::row_major> ? 16 : M);
  wmma::load_matrix_sync(fb, b, std::is_same_v<LB, wmma::row_major> ? N : 16);
  wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(d, fc, col_major_out ? M : N,
                          col_major_out ? wmma::mem_col_major : wmma::mem_row_major);
}
template <int M, int N, class T, class Sum, class LA, class LB>
void check_wmma(bool col_major_out) {
  std::mt19937 random(3);
  std::vector<T> a(M * 16), b(16 * N);
  std::vector<Sum> c(M * N);
  for (T& v : a) v = T(float(int(random() % 15) - 7));
  for (T& v : b) v = T(float(int(random() % 15) - 7));
  for (Sum& v : c) v = Sum(float(int(random() % 15) - 7));
  DeviceArray<T> da(a), db(b);
  DeviceArray<Sum> dc(c), dd(M * N);
  run(wmma_kernel<M, N, T, Sum, LA, LB>, {1, 32}, da.data(), db.data(), dc.data(),
      dd.data(), col_major_out);
  const std::vector<Sum> got = dd.host();
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double want = double(c[std::size_t(m * N + n)]);
      for (int k = 0; k < 16; ++k)
        want += double(a[std::size_t(std::is_same_v<LA, wmma::row_major> ? m * 16 + k
                                                                         : k * M + m)]) *
                double(b[std::size_t(std::is_same_v<LB, wmma::row_major> ? k * N + n
                                                                         : n * 16 + k)]);
      REQUIRE(double(got[std::size_t(col_major_out ? n * M + m : m * N + n)]) == want);
    }
}
TEST_CASE("simt: wmma shapes, types and layouts") {
  using Row = wmma::row_major;
  using Col = wmma::col_major;
  check_wmma<16, 16, __half, float, Row, Row>(false);
  check_wmma<16, 16, __half, float, Col, Col>(true);
  check_wmma<32, 8, __half, float, Row, Col>(false);
  check_wmma<8, 32, __nv_bfloat16, float, Col, Row>(true);
  check_wmma<16, 16, __half, __half, Row, Col>(false);
  check_wmma<16, 16, signed char, int, Row, Col>(false);
}

}  // namespace
