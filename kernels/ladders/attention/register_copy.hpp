/// @file
/// The kernel of the rungs "tensor cores" and "swizzle", which differ in Tile::piece.
#pragma once

#include "ladders/attention/tensor_tile.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
/// Copies 64 rows through registers, 16 bytes a thread and turn; zeros from `end` on.
template <class T>
__device__ void load(T& to, const __half* rows, int first, int end) {
  const int p = threadIdx.x % 8;
  for (int r = threadIdx.x / 8; r < kTile; r += kThreads / 8) {
    uint4 bits = make_uint4(0, 0, 0, 0);
    if (first + r < end)
      bits = *reinterpret_cast<const uint4*>(&rows[(first + r) * kDim + p * 8]);
    *reinterpret_cast<uint4*>(to.piece(r, p)) = bits;
  }
}

template <bool kSwizzle>
__global__ void __launch_bounds__(kThreads)
    tensor_cores(float* y, const __half* q, const __half* k, const __half* v, int T,
                 int N) {
  __shared__ __align__(16) Tile<kSwizzle> qs, ks, vs;
  const int row = threadIdx.x / 32 * 16;  // of the warp
  const int t0 = blockIdx.x * kTile, position = N - T + t0;
  const int end = min(position + kTile, N);  // keys that some row sees
  load(qs, q, t0, T);
  __syncthreads();
  Rows rows;
  rows.read(qs);
  const Last last(position + row, N);
  for (int n0 = 0; n0 < end; n0 += kTile) {
    load(ks, k, n0, N);
    load(vs, v, n0, N);
    __syncthreads();
    rows.attend(ks, vs, n0, last.key);
    __syncthreads();
  }
  rows.store(y, t0 + row, T);
}
// [endregion]

template <bool kSwizzle>
void run_register_copy(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(tensor_cores<kSwizzle>, {dim3(tiles(T, kTile)), dim3(kThreads), 0, stream},
         o.y.data, cuda_pointer(o.x16), cuda_pointer(o.w16), cuda_pointer(o.v16), T, N);
}

}  // namespace
}  // namespace lab::LAB_GPU
