#include "simt/tensor_core.hpp"

#include <cstring>

#include "simt/half.hpp"
#include "simt/report.hpp"
#include "simt/wmma.hpp"
#include "simt/worker.hpp"

namespace emulator {
namespace {

/// The two halves of a register, or its four bytes, as numbers.
struct F16 {
  using Sum = float;
  static constexpr int kPerRegister = 2;
  static float at(std::uint32_t r, int i) {
    return half_bits_to_float(std::uint16_t(r >> 16 * i));
  }
};
struct BF16 {
  using Sum = float;
  static constexpr int kPerRegister = 2;
  static float at(std::uint32_t r, int i) {
    return bfloat16_bits_to_float(std::uint16_t(r >> 16 * i));
  }
};
struct S8 {
  using Sum = int;
  static constexpr int kPerRegister = 4;
  static int at(std::uint32_t r, int i) { return std::int8_t(r >> 8 * i); }
};

/// c + a * b; integers wrap around.
float multiply_add(float a, float b, float c) { return c + a * b; }
int multiply_add(int a, int b, int c) { return int(unsigned(c) + unsigned(a * b)); }

/// In the words of the PTX ISA: lane = 4 groupID + threadID_in_group. A register of A holds
/// neighbours of one row: registers 0 and 2 of row groupID, 1 and 3 of row groupID + 8, and
/// registers 2 and 3 of the second half of k. A register of B holds neighbours of column
/// groupID, register 1 in the second half of k. C: elements 0 and 1 of row groupID, 2 and 3
/// of row groupID + 8.
template <class Input, int K>
void resolve_mma(WarpCalls calls, std::uint32_t) {
  using Sum = typename Input::Sum;
  constexpr int kPer = Input::kPerRegister, kStep = 4 * kPer;  // k covered by one register
  constexpr int kRegisters = K / kStep;                        // of B; A has twice as many
  Sum a[16][K], b[K][8], c[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, thread = lane % 4;
    const auto* ra = static_cast<const std::uint32_t*>(calls[lane]->operand[0]);
    const auto* rb = static_cast<const std::uint32_t*>(calls[lane]->operand[1]);
    const auto* rc = static_cast<const Sum*>(calls[lane]->operand[2]);
    for (int h = 0; h < kRegisters; ++h)
      for (int i = 0; i < kPer; ++i) {
        const int k = h * kStep + thread * kPer + i;
        a[group][k] = Input::at(ra[2 * h], i);
        a[group + 8][k] = Input::at(ra[2 * h + 1], i);
        b[k][group] = Input::at(rb[h], i);
      }
    for (int i = 0; i < 4; ++i) c[group + i / 2 * 8][thread * 2 + i % 2] = rc[i];
  }
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < 8; ++n) c[m][n] = multiply_add(a[m][k], b[k][n], c[m][n]);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      static_cast<Sum*>(calls[lane]->result)[i] =
          c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}

template <class Input, int K>
void mma(const char* name, void* d, const void* a, const void* b, const void* c,
         Location loc) {
  static const Collective op{name, resolve_mma<Input, K>, true, true};
  WarpCall call;
  call.operand[0] = a;
  call.operand[1] = b;
  call.operand[2] = c;
  call.result = d;
  warp_collective(~0u, op, call, loc);
}

template <bool Transposed>
void resolve_ldmatrix(WarpCalls calls, std::uint32_t) {
  const int count = calls[0]->arg;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < count; ++i) {
      const auto element = [&](int row, int col) {
        std::uint16_t v;
        std::memcpy(&v,
                    static_cast<const std::uint16_t*>(calls[8 * i + row]->operand[0]) + col,
                    sizeof v);
        return std::uint32_t(v);
      };
      const int row = lane / 4, col = lane % 4 * 2;
      const std::uint32_t low = Transposed ? element(col, row) : element(row, col),
                          high = Transposed ? element(col + 1, row) : element(row, col + 1);
      static_cast<std::uint32_t*>(calls[lane]->result)[i] = low | high << 16;
    }
}
const Collective kLdmatrix{"ldmatrix", resolve_ldmatrix<false>},
    kLdmatrixTrans{"ldmatrix.trans", resolve_ldmatrix<true>};

}  // namespace

void mma_m16n8k8_f16(float (&d)[4], const std::uint32_t (&a)[2],
                     const std::uint32_t (&b)[1], const float (&c)[4], Location loc) {
  mma<F16, 8>("mma.m16n8k8.f16", d, a, b, c, loc);
}
void mma_m16n8k8_bf16(float (&d)[4], const std::uint32_t (&a)[2],
                      const std::uint32_t (&b)[1], const float (&c)[4], Location loc) {
  mma<BF16, 8>("mma.m16n8k8.bf16", d, a, b, c, loc);
}
void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4],
                      const std::uint32_t (&b)[2], const float (&c)[4], Location loc) {
  mma<F16, 16>("mma.m16n8k16.f16", d, a, b, c, loc);
}
void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                       const std::uint32_t (&b)[2], const float (&c)[4], Location loc) {
  mma<BF16, 16>("mma.m16n8k16.bf16", d, a, b, c, loc);
}
void mma_m16n8k16_s8(int (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1],
                     const int (&c)[4], Location loc) {
  mma<S8, 16>("mma.m16n8k16.s8", d, a, b, c, loc);
}
void mma_m16n8k32_s8(int (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     const int (&c)[4], Location loc) {
  mma<S8, 32>("mma.m16n8k32.s8", d, a, b, c, loc);
}

void ldmatrix(std::uint32_t* registers, int count, bool transposed, const void* row,
              Location loc) {
  std::uint16_t unused[8];
  if (lane_id() < 8 * count) {
    if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
      device_fail(
          "misaligned access",
          "ldmatrix at " + place(loc) + ": the address of a row must be a multiple of 16");
    read_memory(unused, row, 16, loc);
  }
  WarpCall call;
  call.arg = count;
  call.operand[0] = row;
  call.result = registers;
  warp_collective(~0u, transposed ? kLdmatrixTrans : kLdmatrix, call, loc);
}

// ---- wmma

namespace {

/// Calls f(element of this lane, its offset in memory, in elements).
template <class F>
void for_fragment_elements(const FragmentCopy& f, unsigned pitch, F each) {
  const int n = f.rows * f.cols / 32, begin = lane_id() * n;
  for (int i = 0; i < n; ++i) {
    const auto row = std::size_t((begin + i) / f.cols),
               col = std::size_t((begin + i) % f.cols);
    each(static_cast<char*>(f.fragment) + std::size_t(i) * f.element_bytes,
         (f.column_major ? col * pitch + row : row * pitch + col) * f.element_bytes);
  }
}

void meet(const char* name, Location loc) {
  static const Collective load{"load_matrix_sync", kSyncwarp.resolve},
      store{"store_matrix_sync", kSyncwarp.resolve};
  WarpCall call;
  warp_collective(~0u, *name == 'l' ? load : store, call, loc);
}

template <class Sum>
Sum element_at(Element type, const void* p, int i) {
  switch (type) {
    case Element::f16:
      return Sum(float(static_cast<const __half*>(p)[i]));
    case Element::bf16:
      return Sum(float(static_cast<const __nv_bfloat16*>(p)[i]));
    case Element::f32:
      return Sum(static_cast<const float*>(p)[i]);
    case Element::s8:
      return Sum(static_cast<const signed char*>(p)[i]);
    case Element::u8:
      return Sum(static_cast<const unsigned char*>(p)[i]);
    case Element::s32:
      return Sum(static_cast<const int*>(p)[i]);
  }
  return 0;
}

/// Collects one operand, row-major, from the equal parts that the lanes hold.
template <class Sum>
void gather(WarpCalls calls, int operand, Element type, int n, Sum* to) {
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < n / 32; ++i)
      to[lane * (n / 32) + i] = element_at<Sum>(type, calls[lane]->operand[operand], i);
}

template <class Sum>
void multiply_wmma(WarpCalls calls, const FragmentProduct& p) {
  Sum a[32 * 16], b[16 * 32], c[256];
  gather(calls, 0, p.input, p.m * p.k, a);
  gather(calls, 1, p.input, p.k * p.n, b);
  gather(calls, 2, p.output, p.m * p.n, c);
  for (int m = 0; m < p.m; ++m)
    for (int k = 0; k < p.k; ++k)
      for (int n = 0; n < p.n; ++n)
        c[m * p.n + n] = multiply_add(a[m * p.k + k], b[k * p.n + n], c[m * p.n + n]);
  for (int i = 0; i < 256; ++i) {
    void* d = calls[i / 8]->result;
    if (p.output == Element::f16)
      static_cast<__half*>(d)[i % 8] = float(c[i]);
    else
      static_cast<Sum*>(d)[i % 8] = c[i];
  }
}

void resolve_wmma(WarpCalls calls, std::uint32_t) {
  const auto& p = *reinterpret_cast<const FragmentProduct*>(calls[0]->in);
  if (p.output == Element::s32)
    multiply_wmma<int>(calls, p);
  else
    multiply_wmma<float>(calls, p);
}

}  // namespace

void load_fragment(const FragmentCopy& f, const void* matrix, unsigned pitch,
                   Location loc) {
  meet("load", loc);
  for_fragment_elements(f, pitch, [&](char* element, std::size_t offset) {
    read_memory(element, static_cast<const char*>(matrix) + offset, f.element_bytes, loc);
  });
}

void store_fragment(const FragmentCopy& f, void* matrix, unsigned pitch, Location loc) {
  meet("store", loc);
  for_fragment_elements(f, pitch, [&](char* element, std::size_t offset) {
    write_memory(static_cast<char*>(matrix) + offset, element, f.element_bytes, loc);
  });
}

void multiply_fragments(const FragmentProduct& p, const void* a, const void* b,
                        const void* c, void* d, Location loc) {
  static const Collective op{"mma_sync", resolve_wmma, true, true};
  WarpCall call;
  call.in = reinterpret_cast<std::uint64_t>(&p);
  call.operand[0] = a;
  call.operand[1] = b;
  call.operand[2] = c;
  call.result = d;
  warp_collective(~0u, op, call, loc);
}

}  // namespace emulator
