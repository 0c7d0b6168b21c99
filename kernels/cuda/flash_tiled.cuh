/// @file
/// Flash attention on CUDA cores: the tiles of attention_tiled.cuh, with the logarithm of
/// each row's sum. All arithmetic is f32, so it also takes what tensor cores do not.
#pragma once

#include "cuda/attention_tiled.cuh"
#include "cuda/flash_common.cuh"

namespace lab::LAB_GPU {

/// Rows, heads, sequences and splits as in flash_tensor.
template <class KV, int kDim, int kPerThread, int kKeys>
static __global__ void __launch_bounds__(TiledShape<kDim, kPerThread, kKeys>::kThreads)
    flash_tiled(FlashArguments<KV> a) {
  using Shape = TiledShape<kDim, kPerThread, kKeys>;
  extern __shared__ __align__(16) unsigned char dynamic_smem[];
  float* queries = reinterpret_cast<float*>(dynamic_smem);
  float* tile = queries + Shape::kQueryFloats;
  float* weights = tile + Shape::kKeyFloats;
  const int lane = int(threadIdx.x % 32), column = lane % 8;
  const int my_row = int(threadIdx.x / 32) * Shape::kWarpRows + lane / 8;
  const int kv_head = int(blockIdx.y), split = int(blockIdx.z) % a.n_splits;
  const int first_row = int(gridDim.x - 1 - blockIdx.x) * Shape::kRows;
  const FlashSequence sequence(a, int(blockIdx.z) / a.n_splits, split);
  if (first_row >= sequence.n_rows()) return;
  const KvRows<KV> keys = flash_rows(a.k, a, sequence, kv_head);
  const KvRows<KV> values = flash_rows(a.v, a, sequence, kv_head);
  const int last_row = min(first_row + Shape::kRows, sequence.n_rows()) - 1;
  const int end = sequence.seen_end(last_row), dim = a.shape.head_dim;
  int visible[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i)
    visible[i] = sequence.seen_end(min(first_row + my_row + 4 * i, last_row));

  load_queries<Shape>(queries, a.q, a.shape, sequence, kv_head, first_row,
                      a.scale * kLog2E);
  RunningSoftmax<kPerThread> softmax;
  float mixed[kPerThread][Shape::kThreadDims];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    softmax.largest[i] = -INFINITY;
    softmax.sum[i] = 0;
#pragma unroll
    for (int c = 0; c < Shape::kThreadDims; ++c) mixed[i][c] = 0;
  }
  TileOnTheWay<KV, kDim, kKeys, Shape::kThreads> next;
  for (int first = sequence.begin; first < end; first += kKeys) {
    next.fetch(keys, first, end, dim);
    next.store(tile, Shape::kPitch);
    next.fetch(values, first, end, dim);
    __syncthreads();  // queries and keys are there
    float scores[kPerThread][Shape::kThreadKeys];
    tile_scores<Shape>(scores, queries + my_row * Shape::kPitch,
                       tile + column * Shape::kPitch);
    __syncthreads();  // all have read the keys
    next.store(tile, Shape::kPitch);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i)
#pragma unroll
      for (int j = 0; j < Shape::kThreadKeys; ++j)
        if (first + column + 8 * j >= visible[i]) scores[i][j] = -INFINITY;
    float factor[kPerThread];
    softmax.update(scores, factor);
    int seen[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      seen[i] = visible[i] - first;
#pragma unroll
      for (int c = 0; c < Shape::kThreadDims; ++c) mixed[i][c] *= factor[i];
#pragma unroll
      for (int j = 0; j < Shape::kThreadKeys; ++j)
        weights[(my_row + 4 * i) * Shape::kWeightPitch + column + 8 * j] = scores[i][j];
    }
    __syncthreads();  // the values are there, and the warp's weights
    tile_mix<Shape, true>(mixed, weights + my_row * Shape::kWeightPitch, tile + 4 * column,
                          seen, min(kKeys, end - first));
    __syncthreads();  // all have read the values
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    float sum = softmax.sum[i];
#pragma unroll
    for (int step = 4; step >= 1; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    const int row = first_row + my_row + 4 * i;
    if (row > last_row) continue;
    const std::int64_t slot = flash_slot(a, split, sequence.vector_of(kv_head, row));
    const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
#pragma unroll
    for (int c = 0; c < Shape::kThreadDims; c += 4) {
      const int d = 8 * c + 4 * column;
      if (d < dim)
        store_float4(a.out + slot * dim + d,
                     make_float4(mixed[i][c] * inverse, mixed[i][c + 1] * inverse,
                                 mixed[i][c + 2] * inverse, mixed[i][c + 3] * inverse));
    }
    if (column == 0) a.lse[slot] = lse_of(softmax.largest[i], sum);
  }
}

}  // namespace lab::LAB_GPU
