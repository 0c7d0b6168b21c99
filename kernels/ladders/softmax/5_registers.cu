#include "ladders/softmax/online.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
constexpr int kEach = 8;  // float4 of the row that a thread keeps

__global__ void __launch_bounds__(kBlock) registers(float4* y, const float4* x, int K4) {
  x += blockIdx.x * K4, y += blockIdx.x * K4;
  float4 row[kEach];
  Online mine;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {  // unrolled: registers have no addresses
    const int k = threadIdx.x + i * kBlock;
    row[i] = k < K4 ? x[k] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    mine.raise(fmaxf(fmaxf(row[i].x, row[i].y), fmaxf(row[i].z, row[i].w)));
  }
  const float m = mine.origin();
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    row[i] = make_float4(expf(row[i].x - m), expf(row[i].y - m), expf(row[i].z - m),
                         expf(row[i].w - m));
    mine.sum += row[i].x + row[i].y + row[i].z + row[i].w;
  }
  const Online all = block_merge(mine);
  const float scale = expf(mine.max - all.max) / all.sum;  // to the maximum of the row
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int k = threadIdx.x + i * kBlock;
    if (k >= K4) break;
    y[k] =
        make_float4(row[i].x * scale, row[i].y * scale, row[i].z * scale, row[i].w * scale);
  }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(registers, {dim3(T), dim3(kBlock), 0, stream}, reinterpret_cast<float4*>(o.y.data),
         reinterpret_cast<const float4*>(o.x.data), K / 4);
}

// [region prediction]
Traffic predict(Size s) {
  const auto steps = s.T * (s.K / 128), warps = s.T * kWarps;
  return {.global_load = {.requests = steps, .units = steps * 16},
          .global_store = {.requests = steps, .units = steps * 16},
          .shared_load = {.requests = warps * 2, .units = warps * 2},
          .shared_store = {.requests = warps * 2, .units = warps * 2}};
}
// [endregion]

}  // namespace

Rung softmax_registers() {
  return {.name = "one read",
          .file = "softmax/5_registers.cu",
          .idea =
              "The row waits in registers: x is read once, each exponential is taken once, "
              "and the last pass is a multiplication.",
          .run = run,
          .predict = predict,
          .multiple_k = 4,
          .longest = kEach * kBlock * 4};
}

}  // namespace lab::LAB_GPU
