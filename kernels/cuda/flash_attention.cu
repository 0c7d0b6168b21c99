#include "lab/kernels/flash_attention.hpp"

#include "cuda/flash_tensor.cuh"
#include "cuda/flash_tiled.cuh"
#include "cuda/scratch.cuh"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

/// Keys that a block takes of a sequence with few queries.
constexpr int kSplitKeys = 512;

template <class KV>
dim3 flash_grid(const FlashArguments<KV>& a, int rows) {
  return dim3(unsigned(ceil_div(a.shape.max_rows(), rows)), unsigned(a.shape.n_kv_heads),
              unsigned(a.batch.n_sequences * a.n_splits));
}

template <int kDim, class KV>
void tensor(const FlashArguments<KV>& a, Stream stream) {
  using Shape = FlashShape<kDim>;
  launch(flash_tensor<KV, kDim>,
         {flash_grid(a, Shape::kRows), dim3(Shape::kThreads), Shape::kSharedBytes, stream},
         a);
}

template <int kDim, int kPerThread, int kKeys, class KV>
void tiled(const FlashArguments<KV>& a, Stream stream) {
  using Shape = TiledShape<kDim, kPerThread, kKeys>;
  const auto kernel = flash_tiled<KV, kDim, kPerThread, kKeys>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  int(Shape::kSharedBytes)),
             "the shared memory of flash_attention");
  launch(kernel,
         {flash_grid(a, Shape::kRows), dim3(Shape::kThreads), Shape::kSharedBytes, stream},
         a);
}

/// Whether this GPU's tensor cores take KV.
template <class KV>
bool multiplies() {
  if constexpr (std::is_same_v<KV, __half>) return true;
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "the current GPU");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "the GPU's compute capability");
  return major >= 8;
}

template <class KV>
void attend(const FlashArguments<KV>& a, Stream stream) {
  const int dim = a.shape.head_dim;
  if constexpr (!std::is_same_v<KV, float>)
    if ((dim == 32 || dim == 64 || dim == 128) && multiplies<KV>())
      return dim == 32   ? tensor<32>(a, stream)
             : dim == 64 ? tensor<64>(a, stream)
                         : tensor<128>(a, stream);
  if (dim <= 64)
    tiled<64, 4, 64>(a, stream);
  else if (dim <= 128)
    tiled<128, 4, 32>(a, stream);
  else
    tiled<256, 2, 16>(a, stream);
}

/// Launches the kernels of a call whose splits are not decided yet.
template <class KV>
void run_flash(FlashArguments<KV> a, Stream stream) {
  const std::int64_t max_keys = a.shape.capacity, n_sequences = a.batch.n_sequences;
  const bool few = a.shape.max_queries <= kDecodeTokens && max_keys > kSplitKeys;
  // Sequences and splits share an axis of the grid, which has 65,535 blocks.
  const std::int64_t most_splits = 65535 / n_sequences > 1 ? 65535 / n_sequences : 1;
  const std::int64_t least_keys = ceil_div(max_keys, most_splits);
  a.split_keys = int(least_keys > kSplitKeys ? least_keys : kSplitKeys);
  a.n_splits = few ? int(ceil_div(max_keys, a.split_keys)) : 1;
  const std::int64_t vectors = std::int64_t(a.n_tokens) * a.shape.n_heads;
  const std::int64_t slots = few ? a.n_splits * vectors : 0;
  const Scratch<float> parts(slots * a.shape.head_dim, stream), part_lse(slots, stream);
  float *const out = a.out, *const lse = a.lse;
  if (few) {
    a.out = parts.data();
    a.lse = part_lse.data();
  }
  attend(a, stream);
  if (few)
    launch(flash_merge, {dim3(unsigned(ceil_div(vectors, 4))), dim3(128), 0, stream}, out,
           lse, parts.data(), part_lse.data(), a.batch.query_starts + n_sequences,
           int(vectors), a.shape.n_heads, a.shape.head_dim, a.n_splits);
}

}  // namespace

template <class KV>
void flash_attention(DeviceView<float, 3> out, DeviceView<float, 2> lse,
                     DeviceView<const float, 3> q, DeviceView<const KV, 3> k,
                     DeviceView<const KV, 3> v, const RaggedBatch<Space::device>& batch,
                     float scale, AttentionMask mask, Stream stream) {
  check_flash_attention(out.shape, lse.shape, q.shape, k.shape, v.shape, batch);
  check_gpu_heads("flash_attention", q.shape[2]);
  if (out.size() == 0 || batch.max_queries == 0 || batch.query_starts.shape[0] < 2) return;
  run_flash(
      FlashArguments<typename CudaType<KV>::type>{
          out.data, lse.data, q.data, cuda_pointer(k), cuda_pointer(v),
          AttentionBatch{batch.query_starts.data, batch.key_starts.data, nullptr,
                         int(batch.query_starts.shape[0] - 1), 0, Divisor(1)},
          batch.key_starts.data,
          AttentionShape{int(q.shape[1]), int(k.shape[1]), int(q.shape[2]),
                         int(batch.max_keys), int(batch.max_queries)},
          scale, mask == AttentionMask::causal, int(q.shape[0])},
      stream);
}

template <class KV>
void flash_attention(DeviceView<float, 3> out, DeviceView<float, 2> lse,
                     DeviceView<const float, 3> q, DeviceView<const KV, 4> k,
                     DeviceView<const KV, 4> v, const PagedBatch<Space::device>& batch,
                     float scale, AttentionMask mask, Stream stream) {
  check_flash_attention(out.shape, lse.shape, q.shape, k.shape, v.shape, batch);
  check_gpu_heads("flash_attention", q.shape[2]);
  const std::int64_t n_sequences = batch.kv_lens.shape[0];
  const std::int64_t capacity =
      check_gpu_capacity("flash_attention", batch.block_tables.shape[1], k.shape[1]);
  if (out.size() == 0 || n_sequences == 0 || batch.max_queries == 0 || capacity == 0)
    return;
  run_flash(
      FlashArguments<typename CudaType<KV>::type>{
          out.data, lse.data, q.data, cuda_pointer(k), cuda_pointer(v),
          AttentionBatch{batch.query_starts.data, batch.kv_lens.data,
                         batch.block_tables.data, int(n_sequences),
                         int(batch.block_tables.shape[1]), Divisor(int(k.shape[1]))},
          nullptr,
          AttentionShape{int(q.shape[1]), int(k.shape[2]), int(q.shape[2]), int(capacity),
                         int(batch.max_queries)},
          scale, mask == AttentionMask::causal, int(q.shape[0])},
      stream);
}

#define LAB_INSTANTIATE(KV)                                                                \
  template void flash_attention<KV>(                                                       \
      DeviceView<float, 3>, DeviceView<float, 2>, DeviceView<const float, 3>,              \
      DeviceView<const KV, 3>, DeviceView<const KV, 3>, const RaggedBatch<Space::device>&, \
      float, AttentionMask, Stream);                                                       \
  template void flash_attention<KV>(                                                       \
      DeviceView<float, 3>, DeviceView<float, 2>, DeviceView<const float, 3>,              \
      DeviceView<const KV, 4>, DeviceView<const KV, 4>, const PagedBatch<Space::device>&,  \
      float, AttentionMask, Stream);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::LAB_GPU
