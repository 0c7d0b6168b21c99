#include "lab/kernels/rms_norm.hpp"

#include "cuda/reduce.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

// x is read twice, the second time from the L1 cache, where a row fits. Not __restrict__:
// out may be x. A thread writes only elements that itself has read.
template <int kVec, int kThreads>
__global__ void __launch_bounds__(kThreads == 32 ? 32 * kRowsPerBlock : kThreads)
    rms_norm_kernel(float* out, const float* x, const float* __restrict__ weight,
                    std::int64_t n_tokens, int model_dim, float eps) {
  const std::int64_t t = row_of_thread<kThreads>();
  if (t >= n_tokens) return;
  const float* in = x + t * model_dim;
  const int first = int(threadIdx.x) * kVec;
  constexpr int kStep = kThreads * kVec;

  float squares = 0;
#pragma unroll 4
  for (int d = first; d < model_dim; d += kStep) {
    const Pack<kVec> v = load_pack<kVec>(in + d);
#pragma unroll
    for (int j = 0; j < kVec; ++j) squares += v.at[j] * v.at[j];
  }
  squares = reduce<kThreads>(squares, Sum(), 0.0f);
  const float scale = rsqrtf(squares / float(model_dim) + eps);

#pragma unroll 2
  for (int d = first; d < model_dim; d += kStep) {
    Pack<kVec> v = load_pack<kVec>(in + d);
    const Pack<kVec> w = load_pack<kVec>(weight + d);
#pragma unroll
    for (int j = 0; j < kVec; ++j) v.at[j] = v.at[j] * scale * w.at[j];
    store_pack(out + t * model_dim + d, v);
  }
}

}  // namespace

void rms_norm(DeviceView<float, 2> out, DeviceView<const float, 2> x,
              DeviceView<const float, 1> weight, float eps, Stream stream) {
  check_rms_norm(out.shape, x.shape, weight.shape);
  const std::int64_t n_tokens = x.shape[0], model_dim = x.shape[1];
  if (x.size() == 0) return;
  const auto run = [&](auto kernel, const Grid& grid) {
    launch(kernel, grid, out.data, x.data, weight.data, n_tokens, int(model_dim), eps);
  };
  const bool packs = model_dim % 4 == 0 && all_aligned(out.data, x.data, weight.data);
  if (model_dim <= kShortRow)
    run(packs ? rms_norm_kernel<4, 32> : rms_norm_kernel<1, 32>,
        row_grid<32>(n_tokens, stream));
  else
    run(packs ? rms_norm_kernel<4, 256> : rms_norm_kernel<1, 256>,
        row_grid<256>(n_tokens, stream));
}

}  // namespace lab::LAB_GPU
