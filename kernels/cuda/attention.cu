#include "lab/kernels/attention.hpp"

#include "cuda/attention_decode.cuh"
#include "cuda/attention_tiled.cuh"
#include "cuda/scratch.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

/// Up to this many tokens, splitting the keys keeps more of a GPU busy than tiles do.
constexpr int kDecodeTokens = 4;
constexpr int kMaxHeadDim = 256;

/// Pointers and sizes of one call, in CUDA's types.
template <class KV>
struct Problem {
  float* out;
  const float* q;
  const KV *k, *v;
  const std::int32_t* kv_len;
  float scale;
  AttentionShape shape;
  Stream stream;
};

template <int kLanes, int kRows, class KV>
void decode_rows(const Problem<KV>& p) {
  const AttentionShape& s = p.shape;
  const std::int64_t splits = ceil_div(s.capacity, kSplit);
  const std::int64_t slots = splits > 1 ? splits * s.n_tokens * s.n_heads : 0;
  const Scratch<float> mixed(slots * s.head_dim, p.stream);
  const Scratch<float2> stats(slots, p.stream);
  const SplitResults results{mixed.data(), stats.data()};
  launch(attention_split<KV, kLanes, kRows>,
         {dim3(unsigned(splits), unsigned(s.n_kv_heads),
               unsigned(ceil_div(s.n_rows(), kRows))),
          dim3(32 * kDecodeWarps), 0, p.stream},
         p.out, results, p.q, p.k, p.v, p.kv_len, p.scale, s);
  if (splits > 1)
    launch(attention_merge<kLanes>,
           {dim3(unsigned(s.n_tokens * s.n_heads)), dim3(kMergeThreads), 0, p.stream},
           p.out, results, p.kv_len, s);
}

template <int kLanes, class KV>
void decode(const Problem<KV>& p) {
  const int rows = p.shape.n_rows();
  if (rows == 1)
    decode_rows<kLanes, 1>(p);
  else if (rows <= 4 || kLanes == 32)
    decode_rows<kLanes, 4>(p);
  else if constexpr (kLanes < 32)  // else registers and shared memory do not suffice
    decode_rows<kLanes, 8>(p);
}

template <int kDim, int kPerThread, int kKeys, class KV>
void tiled(const Problem<KV>& p) {
  using Shape = TiledShape<kDim, kPerThread, kKeys>;
  const auto kernel = attention_tiled<KV, kDim, kPerThread, kKeys>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  int(Shape::kSharedBytes)),
             "the shared memory of attention");
  launch(kernel,
         {dim3(unsigned(ceil_div(p.shape.n_rows(), Shape::kRows)),
               unsigned(p.shape.n_kv_heads)),
          dim3(Shape::kThreads), Shape::kSharedBytes, p.stream},
         p.out, p.q, p.k, p.v, p.kv_len, p.scale, p.shape);
}

template <class KV>
void run(const Problem<KV>& p) {
  const bool few = p.shape.n_tokens <= kDecodeTokens;
  const int dim = p.shape.head_dim;
  if (dim <= 32)
    few ? decode<4>(p) : tiled<32, 4, 64>(p);
  else if (dim <= 64)
    few ? decode<8>(p) : tiled<64, 4, 64>(p);
  else if (dim <= 96 && !few)
    tiled<96, 4, 32>(p);
  else if (dim <= 128)
    few ? decode<16>(p) : tiled<128, 4, 32>(p);
  else
    few ? decode<32>(p) : tiled<256, 2, 16>(p);
}

}  // namespace

template <class KV>
void attention(DeviceView<float, 3> out, DeviceView<const float, 3> q,
               DeviceView<const KV, 3> k, DeviceView<const KV, 3> v, float scale,
               DeviceView<const std::int32_t, 1> kv_len, Stream stream) {
  check_attention(out.shape, q.shape, k.shape, v.shape);
  const std::int64_t head_dim = q.shape[2];
  if (head_dim % 8 != 0 || head_dim > kMaxHeadDim)
    throw_error("attention: head_dim is " + std::to_string(head_dim) +
                ", but on a GPU it must be a multiple of 8, at most " +
                std::to_string(kMaxHeadDim) + "; run this model with --device cpu");
  if (kv_len.shape[0] != 1)
    throw_error("attention: kv_len has " + std::to_string(kv_len.shape[0]) +
                " elements; give it one, the number of valid positions");
  if (out.size() == 0) return;
  run(Problem<typename CudaType<KV>::type>{
      out.data,
      q.data,
      cuda_pointer(k),
      cuda_pointer(v),
      kv_len.data,
      scale,
      {int(q.shape[0]), int(q.shape[1]), int(k.shape[1]), int(head_dim), int(k.shape[0])},
      stream});
}

#define LAB_INSTANTIATE(KV)                                                            \
  template void attention<KV>(DeviceView<float, 3>, DeviceView<const float, 3>,        \
                              DeviceView<const KV, 3>, DeviceView<const KV, 3>, float, \
                              DeviceView<const std::int32_t, 1>, Stream);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::LAB_GPU
