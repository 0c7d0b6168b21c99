#include "cuda/flash_backward.cuh"
#include "cuda/scratch.cuh"
#include "lab/kernels/check.hpp"
#include "lab/kernels/flash_attention.hpp"

namespace lab::LAB_GPU {
namespace {

template <int kDim>
void backward(const BackwardArguments& a, Stream stream) {
  using Shape = BackwardShape<kDim>;
  const AttentionShape& shape = a.forward.shape;
  const auto run = [&](void (*kernel)(BackwardArguments), std::int64_t blocks) {
    if (blocks == 0) return;
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    int(Shape::kSharedBytes)),
               "the shared memory of flash_attention_backward");
    launch(kernel,
           {dim3(unsigned(blocks), unsigned(shape.n_kv_heads),
                 unsigned(a.forward.batch.n_sequences)),
            dim3(Shape::kThreads), Shape::kSharedBytes, stream},
           a);
  };
  run(flash_backward_keys<kDim>, ceil_div(shape.capacity, Shape::kKeys));
  run(flash_backward_queries<kDim>, ceil_div(shape.max_rows(), Shape::kRows));
}

}  // namespace

void flash_attention_backward(DeviceView<float, 3> dq, DeviceView<float, 3> dk,
                              DeviceView<float, 3> dv, DeviceView<const float, 3> dout,
                              DeviceView<const float, 3> q, DeviceView<const float, 3> k,
                              DeviceView<const float, 3> v, DeviceView<const float, 3> out,
                              DeviceView<const float, 2> lse,
                              const RaggedBatch<Space::device>& batch, float scale,
                              AttentionMask mask, Stream stream) {
  check_flash_attention(out.shape, lse.shape, q.shape, k.shape, v.shape, batch);
  check_flash_attention(dout.shape, lse.shape, dq.shape, dk.shape, dv.shape, batch);
  check_flash_attention(dq.shape, lse.shape, q.shape, dk.shape, k.shape, batch);
  const int dim = int(q.shape[2]);
  if (dim > 128)
    throw_error("flash_attention_backward: head_dim is " + std::to_string(dim) +
                ", but on a GPU it must be at most 128; use the CPU");
  const int n_sequences = int(batch.query_starts.shape[0] - 1);
  if (n_sequences == 0) return;
  const int n_vectors = int(lse.size());
  const Scratch<float> delta(n_vectors, stream);
  if (n_vectors > 0)
    launch(flash_delta, {dim3(unsigned(ceil_div(n_vectors, 4))), dim3(128), 0, stream},
           delta.data(), dout.data, out.data, n_vectors, dim);
  const BackwardArguments a{
      FlashArguments<float>{nullptr, nullptr, q.data, k.data, v.data,
                            AttentionBatch{batch.query_starts.data, batch.key_starts.data,
                                           nullptr, n_sequences, 0, Divisor(1)},
                            batch.key_starts.data,
                            AttentionShape{int(q.shape[1]), int(k.shape[1]), dim,
                                           int(batch.max_keys), int(batch.max_queries)},
                            scale, mask == AttentionMask::causal, int(q.shape[0]), 1, 0},
      dout.data,
      lse.data,
      delta.data(),
      dq.data,
      dk.data,
      dv.data};
  if (dim <= 32)
    backward<32>(a, stream);
  else if (dim <= 64)
    backward<64>(a, stream);
  else
    backward<128>(a, stream);
}

}  // namespace lab::LAB_GPU
