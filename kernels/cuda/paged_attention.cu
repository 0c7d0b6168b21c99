#include "lab/kernels/paged_attention.hpp"

#include "cuda/attention_problem.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {

std::int64_t check_gpu_capacity(const char* op, std::int64_t max_blocks,
                                std::int64_t block_size) {
  if (max_blocks * block_size > 1 << 30)
    throw_error(std::string(op) + ": " + std::to_string(max_blocks) + " blocks of " +
                std::to_string(block_size) + " positions; a sequence has at most 2^30");
  return max_blocks * block_size;
}

template <class KV>
void paged_attention(DeviceView<float, 3> out, DeviceView<const float, 3> q,
                     DeviceView<const KV, 4> k, DeviceView<const KV, 4> v,
                     const PagedBatch<Space::device>& batch, float scale, Stream stream) {
  check_paged_attention(out.shape, q.shape, k.shape, v.shape, batch);
  check_gpu_heads("paged_attention", q.shape[2]);
  const std::int64_t n_sequences = batch.kv_lens.shape[0];
  const std::int64_t max_blocks = batch.block_tables.shape[1], block_size = k.shape[1];
  const std::int64_t capacity =
      check_gpu_capacity("paged_attention", max_blocks, block_size);
  if (out.size() == 0 || n_sequences == 0 || batch.max_queries == 0 || capacity == 0)
    return;
  run_attention(AttentionProblem<typename CudaType<KV>::type>{
      out.data, q.data, cuda_pointer(k), cuda_pointer(v), scale,
      AttentionBatch{batch.query_starts.data, batch.kv_lens.data, batch.block_tables.data,
                     int(n_sequences), int(max_blocks), Divisor(int(block_size))},
      AttentionShape{int(q.shape[1]), int(k.shape[2]), int(q.shape[2]), int(capacity),
                     int(batch.max_queries)},
      stream});
}

#define LAB_INSTANTIATE(KV)                                                           \
  template void paged_attention<KV>(DeviceView<float, 3>, DeviceView<const float, 3>, \
                                    DeviceView<const KV, 4>, DeviceView<const KV, 4>, \
                                    const PagedBatch<Space::device>&, float, Stream);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::LAB_GPU
