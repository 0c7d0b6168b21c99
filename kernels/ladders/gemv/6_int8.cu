#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr int kRows = 4;

__global__ void __launch_bounds__(128)
    int8_weights(float* y, const int4* x, const int4* w, int N, int K16) {
  const int n0 = (blockIdx.x * 4 + threadIdx.y) * kRows, lane = threadIdx.x;
  int sum[kRows] = {};
  for (int k = lane; k < K16; k += 32) {
    const int4 a = x[k];
    for (int r = 0; r < kRows; ++r) {
      if (n0 + r >= N) break;
      const int4 b = w[(n0 + r) * K16 + k];
      sum[r] = __dp4a(a.x, b.x, __dp4a(a.y, b.y, sum[r]));  // 4 products each
      sum[r] = __dp4a(a.z, b.z, __dp4a(a.w, b.w, sum[r]));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const int total = warp_sum(sum[r]);
    if (lane == 0 && n0 + r < N) y[n0 + r] = float(total) * ladders::kUnit * ladders::kUnit;
  }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(int8_weights, {dim3(tiles(N, 4 * kRows)), dim3(32, 4), 0, stream}, o.y.data,
         reinterpret_cast<const int4*>(o.x8.data), reinterpret_cast<const int4*>(o.w8.data),
         N, K / 16);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.N / kRows * (s.K / 512);
  return {
      .global_load = {.requests = steps * (1 + kRows), .units = steps * 16 * (1 + kRows)},
      .global_store = {.requests = s.N, .units = s.N}};
}
// [endregion]

}  // namespace

Rung gemv_int8() {
  return {.name = "int8",
          .file = "gemv/6_int8.cu",
          .idea =
              "Weights and activations of 8 bits: a quarter of the first rungs' bytes, and "
              "four products for each instruction (dp4a), summed exactly in 32 bits.",
          .run = run,
          .predict = predict,
          .multiple_k = 16,
          .bytes = 1};
}

}  // namespace lab::LAB_GPU
