#include "ladders/block.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr int kEach = 8;  // float4 of the row that a thread keeps

__global__ void __launch_bounds__(kBlock)
    registers(float4* y, const float4* x, const float4* w, int K4) {
  x += blockIdx.x * K4, y += blockIdx.x * K4;
  float4 row[kEach] = {};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {  // unrolled: registers have no addresses
    const int k = threadIdx.x + i * kBlock;
    if (k < K4) row[i] = x[k];
    sum += row[i].x * row[i].x + row[i].y * row[i].y + row[i].z * row[i].z +
           row[i].w * row[i].w;
  }
  sum = block_reduce(sum, Add{});
  const float s = rsqrtf(sum / (4 * K4) + ladders::kEps);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int k = threadIdx.x + i * kBlock;
    if (k >= K4) break;
    const float4 v = row[i], g = w[k];
    y[k] = make_float4(v.x * s * g.x, v.y * s * g.y, v.z * s * g.z, v.w * s * g.w);
  }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(registers, {dim3(T), dim3(kBlock), 0, stream}, reinterpret_cast<float4*>(o.y.data),
         reinterpret_cast<const float4*>(o.x.data),
         reinterpret_cast<const float4*>(o.w.data), K / 4);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 128), warps = s.T * kWarps;
  return {.global_load = {.requests = steps * 2, .units = steps * 2 * 16},  // x, w once
          .global_store = {.requests = steps, .units = steps * 16},
          .shared_load = {.requests = warps, .units = warps},
          .shared_store = {.requests = warps, .units = warps}};
}
// [endregion]

}  // namespace

Rung rms_norm_registers() {
  return {.name = "one read",
          .file = "rms_norm/6_registers.cu",
          .idea =
              "The row waits in registers while its sum is taken: x is read once. That is "
              "the least there is: x in, y out.",
          .run = run,
          .predict = predict,
          .multiple_k = 4,
          .longest = kEach * kBlock * 4};
}

}  // namespace lab::LAB_GPU
