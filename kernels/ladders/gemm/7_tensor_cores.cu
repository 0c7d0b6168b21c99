#include "ladders/gemm/tensor_tile.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
/// Copies columns k0 .. k0 + 31 of 128 rows through registers, 16 bytes a thread and turn.
__device__ void load(Tile& to, const __half* rows, int row0, int n_rows, int k0, int K) {
  const int p = threadIdx.x % 4, k = k0 + p * 8;
  for (int first = 0; first < kTile; first += 64) {
    const int r = first + threadIdx.x / 4;
    uint4 v = make_uint4(0, 0, 0, 0);
    if (row0 + r < n_rows && k < K)
      v = *reinterpret_cast<const uint4*>(&rows[(row0 + r) * K + k]);
    *reinterpret_cast<uint4*>(to.piece(r, p)) = v;
  }
}

__global__ void __launch_bounds__(256)
    tensor_cores(float* y, const __half* x, const __half* w, int T, int N, int K) {
  __shared__ __align__(16) Stage stage;
  const int warp = threadIdx.x / 32, row = warp / 4 * 64, column = warp % 4 * 32;
  const int t0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile;
  Sums sum = {};
  for (int k0 = 0; k0 < K; k0 += kStep) {
    load(stage.x, x, t0, T, k0, K);
    load(stage.w, w, n0, N, k0, K);
    __syncthreads();
    multiply(sum, stage, row, column);
    __syncthreads();
  }
  store(y, sum, t0 + row, n0 + column, T, N);
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(tensor_cores, {dim3(tiles(N, kTile), tiles(T, kTile)), dim3(256), 0, stream},
         o.y.data, cuda_pointer(o.x16), cuda_pointer(o.w16), T, N, K);
}

// [region prediction]
Traffic predict(Size s) { return predict_tensor_tile(s); }
// [endregion]

}  // namespace

Rung gemm_tensor_cores() {
  return {
      .name = "tensor cores",
      .file = "gemm/7_tensor_cores.cu",
      .idea =
          "Operands in f16, sums in f32: half the bytes, and a warp multiplies 16 x 16 "
          "by 16 x 8 in one instruction. ldmatrix brings its fragments, and a swizzle in "
          "place of padding keeps all accesses free of conflicts.",
      .run = run,
      .predict = predict,
      .multiple_n = 2,
      .multiple_k = 8,
      .bytes = 2};
}

}  // namespace lab::LAB_GPU
