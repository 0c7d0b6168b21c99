#include "lab/kernels/attention.hpp"

#include "cuda/attention_decode.cuh"
#include "cuda/attention_problem.cuh"
#include "cuda/attention_tiled.cuh"
#include "cuda/scratch.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

template <int kLanes, int kRows, class KV>
void decode_rows(const AttentionProblem<KV>& p) {
  const AttentionShape& s = p.shape;
  const std::int64_t splits = ceil_div(s.capacity, kSplit), tokens = split_tokens(s);
  const std::int64_t row_tiles = ceil_div(tokens * s.heads_per_group(), kRows);
  const std::int64_t slots =
      splits > 1 ? splits * p.batch.n_sequences * tokens * s.n_heads : 0;
  const Scratch<float> mixed(slots * s.head_dim, p.stream);
  const Scratch<float2> stats(slots, p.stream);
  const SplitResults results{mixed.data(), stats.data()};
  launch(attention_split<KV, kLanes, kRows>,
         {dim3(unsigned(splits), unsigned(s.n_kv_heads),
               unsigned(row_tiles * p.batch.n_sequences)),
          dim3(32 * kDecodeWarps), 0, p.stream},
         p.out, results, p.q, p.k, p.v, p.batch, p.scale, s);
  if (splits > 1)
    launch(attention_merge<kLanes>,
           {dim3(unsigned(tokens * s.n_heads), unsigned(p.batch.n_sequences)),
            dim3(kMergeThreads), 0, p.stream},
           p.out, results, p.batch, s);
}

template <int kLanes, class KV>
void decode(const AttentionProblem<KV>& p) {
  const int rows = split_tokens(p.shape) * p.shape.heads_per_group();
  if (rows == 1)
    decode_rows<kLanes, 1>(p);
  else if (rows <= 4 || kLanes == 32)
    decode_rows<kLanes, 4>(p);
  else if constexpr (kLanes < 32)  // else registers and shared memory do not suffice
    decode_rows<kLanes, 8>(p);
}

template <int kDim, int kPerThread, int kKeys, class KV>
void tiled(const AttentionProblem<KV>& p) {
  using Shape = TiledShape<kDim, kPerThread, kKeys>;
  const auto kernel = attention_tiled<KV, kDim, kPerThread, kKeys>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  int(Shape::kSharedBytes)),
             "the shared memory of attention");
  launch(kernel,
         {dim3(unsigned(ceil_div(p.shape.max_rows(), Shape::kRows)),
               unsigned(p.shape.n_kv_heads), unsigned(p.batch.n_sequences)),
          dim3(Shape::kThreads), Shape::kSharedBytes, p.stream},
         p.out, p.q, p.k, p.v, p.batch, p.scale, p.shape);
}

template <class KV>
void decode_any(const AttentionProblem<KV>& p) {
  const int dim = p.shape.head_dim;
  if (dim <= 32)
    decode<4>(p);
  else if (dim <= 64)
    decode<8>(p);
  else if (dim <= 128)
    decode<16>(p);
  else
    decode<32>(p);
}

template <class KV>
void tiled_any(const AttentionProblem<KV>& p) {
  const int dim = p.shape.head_dim;
  if (dim <= 32)
    tiled<32, 4, 64>(p);
  else if (dim <= 64)
    tiled<64, 4, 64>(p);
  else if (dim <= 96)
    tiled<96, 4, 32>(p);
  else if (dim <= 128)
    tiled<128, 4, 32>(p);
  else
    tiled<256, 2, 16>(p);
}

}  // namespace

void check_gpu_heads(const char* op, std::int64_t head_dim) {
  constexpr int kMaxHeadDim = 256;
  if (head_dim % 8 != 0 || head_dim > kMaxHeadDim)
    throw_error(std::string(op) + ": head_dim is " + std::to_string(head_dim) +
                ", but on a GPU it must be a multiple of 8, at most " +
                std::to_string(kMaxHeadDim) + "; run this model with --device cpu");
}

template <class KV>
void run_attention(const AttentionProblem<KV>& p) {
  const bool few = p.shape.max_queries <= kDecodeTokens;
  if (few || p.batch.n_sequences > 1) decode_any(p);
  if (!few) tiled_any(p);
}
template void run_attention(const AttentionProblem<float>&);
template void run_attention(const AttentionProblem<__half>&);
template void run_attention(const AttentionProblem<__nv_bfloat16>&);

template <class KV>
void attention(DeviceView<float, 3> out, DeviceView<const float, 3> q,
               DeviceView<const KV, 3> k, DeviceView<const KV, 3> v, float scale,
               DeviceView<const std::int32_t, 1> kv_len, Stream stream) {
  check_attention(out.shape, q.shape, k.shape, v.shape);
  check_gpu_heads("attention", q.shape[2]);
  if (kv_len.shape[0] != 1)
    throw_error("attention: kv_len has " + std::to_string(kv_len.shape[0]) +
                " elements; give it one, the number of valid positions");
  if (out.size() == 0) return;
  run_attention(AttentionProblem<typename CudaType<KV>::type>{
      out.data, q.data, cuda_pointer(k), cuda_pointer(v), scale,
      AttentionBatch{nullptr, kv_len.data, nullptr, 1, 0, Divisor(1)},
      AttentionShape{int(q.shape[1]), int(k.shape[1]), int(q.shape[2]), int(k.shape[0]),
                     int(q.shape[0])},
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
