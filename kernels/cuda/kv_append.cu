#include "lab/kernels/kv_append.hpp"

#include "cuda/reduce.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kBlock = 256;

template <class KV, int N>
struct alignas(sizeof(KV) * N) Rounded {
  KV at[N];
};

/// Block (t, b) rounds elements of token t.
template <class KV, int kVec>
__global__ void __launch_bounds__(kBlock)
    kv_append_kernel(KV* __restrict__ cache, const float* __restrict__ x,
                     const std::int32_t* __restrict__ slots, std::int64_t capacity,
                     int row_size) {
  const std::int64_t t = blockIdx.x, slot = slots[t];
  const int i = int(blockIdx.y * kBlock + threadIdx.x) * kVec;
  if (i >= row_size || slot < 0 || slot >= capacity) return;
  const Pack<kVec> v = load_pack<kVec>(x + t * row_size + i);
  Rounded<KV, kVec> rounded;
#pragma unroll
  for (int j = 0; j < kVec; ++j) rounded.at[j] = KV(v.at[j]);
  *reinterpret_cast<Rounded<KV, kVec>*>(cache + slot * row_size + i) = rounded;
}

}  // namespace

template <class KV>
void kv_append(DeviceView<KV, 3> cache, DeviceView<const float, 3> x,
               DeviceView<const std::int32_t, 1> slots, Stream stream) {
  check_kv_append(cache.shape, x.shape, slots.shape);
  if (x.size() == 0) return;
  using Stored = typename CudaType<KV>::type;
  const std::int64_t row_size = x.shape[1] * x.shape[2];
  const auto run = [&](auto kernel, int vec) {
    const auto blocks = unsigned(ceil_div(row_size, kBlock * vec));
    launch(kernel, {dim3(unsigned(x.shape[0]), blocks), dim3(kBlock), 0, stream},
           cuda_pointer(cache), x.data, slots.data, cache.shape[0], int(row_size));
  };
  if (row_size % 4 == 0 && all_aligned(x.data, cache.data))
    run(kv_append_kernel<Stored, 4>, 4);
  else
    run(kv_append_kernel<Stored, 1>, 1);
}

#define LAB_INSTANTIATE(KV)                                                  \
  template void kv_append<KV>(DeviceView<KV, 3>, DeviceView<const float, 3>, \
                              DeviceView<const std::int32_t, 1>, Stream);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::LAB_GPU
