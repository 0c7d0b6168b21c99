/// @file
/// Flash attention on tensor cores, of f16 or bf16: a block takes 64 rows of a kv head, a
/// warp 16 of them, and all keys that they see, a tile at a time.
///
///     global   q (f32) ---round--> shared ---ldmatrix--> A of every tile, in registers
///     global   K ----cp.async----> shared ---ldmatrix--> B      scores (16, keys) in f32
///     softmax online in registers; weights rounded: the accumulator's layout is A's
///     global   V ----cp.async----> shared ---ldmatrix.trans--> B   out (16, Dh) in f32
///
/// Keys and values of the next tile are copied while this one is multiplied.
/// @par Source Dao 2023, arXiv:2307.08691, sections 3.1 to 3.3; PTX ISA, "Matrix fragments
///      for mma.m16n8k16"
#pragma once

#include "cuda/flash_common.cuh"

namespace lab::LAB_GPU {
namespace {

/// The shape of a tile of 16-bit rows in shared memory. At most 48 KiB, which every GPU
/// gives without asking.
template <int kDim>
struct FlashShape {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps, kRows = 16 * kWarps;
  static constexpr int kKeys = kDim <= 64 ? 64 : 32;
  static constexpr int kChunks = kDim / 8;  // of 16 bytes, in a row
  static constexpr int kRowBytes = 2 * kDim;
  static constexpr int kQueryBytes = kRows * kRowBytes, kTileBytes = kKeys * kRowBytes;
  /// Queries; two stages of keys and values.
  static constexpr std::size_t kSharedBytes = kQueryBytes + 4 * kTileBytes;
  static_assert(kSharedBytes <= 48 * 1024);
  static_assert(kDim % 32 == 0, "two steps of 16 dimensions are read at once");

  /// Chunk `chunk` of row `row`. Eight rows of one chunk, which ldmatrix reads at once, lie
  /// in different banks: the chunk's number is changed by that of the row.
  __device__ static int offset(int row, int chunk) {
    const int turn = kChunks >= 8 ? row & 7 : (row >> 1) & 3;
    return row * kRowBytes + 16 * (chunk ^ turn);
  }
};

/// Two numbers rounded to KV, as the tensor cores take them.
template <class KV>
__device__ __forceinline__ std::uint32_t pack_pair(float a, float b) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<KV, __half>) {
    const __half2 pair = __floats2half2_rn(a, b);
    memcpy(&bits, &pair, sizeof bits);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
    memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}

template <class KV>
__device__ __forceinline__ void multiply(float (&sum)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  const std::uint32_t b[2] = {b0, b1};
  if constexpr (std::is_same_v<KV, __half>)
    mma_m16n8k16(sum, a, b, sum);
  else
    mma_m16n8k16_bf16(sum, a, b, sum);
}

/// The rows of the block, rounded; rows that do not exist repeat the last.
template <class Shape, class KV>
__device__ __forceinline__ void store_queries(unsigned char* to,
                                              const FlashArguments<KV>& a,
                                              const FlashSequence& sequence, int kv_head,
                                              int first_row) {
  for (int i = threadIdx.x; i < Shape::kRows * Shape::kChunks; i += Shape::kThreads) {
    const int r = i / Shape::kChunks, chunk = i % Shape::kChunks;
    const int row = min(first_row + r, sequence.n_rows() - 1);
    const float* from =
        a.q + sequence.vector_of(kv_head, row) * a.shape.head_dim + 8 * chunk;
    const float4 x = load_float4(from), y = load_float4(from + 4);
    *reinterpret_cast<uint4*>(to + Shape::offset(r, chunk)) =
        make_uint4(pack_pair<KV>(x.x, x.y), pack_pair<KV>(x.z, x.w),
                   pack_pair<KV>(y.x, y.y), pack_pair<KV>(y.z, y.w));
  }
}

/// Starts the copy of a tile of rows from `first` on; zeros from `end` on.
template <class Shape, class KV>
__device__ __forceinline__ void copy_tile(unsigned char* to, const KvRows<KV>& rows,
                                          int first, int end) {
  for (int i = threadIdx.x; i < Shape::kKeys * Shape::kChunks; i += Shape::kThreads) {
    const int row = i / Shape::kChunks, chunk = i % Shape::kChunks;
    const int position = min(first + row, end - 1);
    cp_async_16(to + Shape::offset(row, chunk), rows[position] + 8 * chunk,
                first + row < end);
  }
}

/// A warp's 16 rows: lane l has elements of the rows l / 4 and l / 4 + 8.
template <class Shape>
struct FlashRows {
  static constexpr int kDims = Shape::kChunks;  // pieces of 8 dimensions
  std::uint32_t queries[kDims / 2][4];
  float mixed[kDims][4] = {};
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};  // sums of this lane's keys

  /// The scores, in powers of two: -infinity from seen[i] on.
  template <class KV>
  __device__ __forceinline__ void scores(float (&s)[Shape::kKeys / 8][4],
                                         const unsigned char* keys, float factor, int first,
                                         const int (&seen)[2], bool masked) const {
    const int lane = int(threadIdx.x % 32);
#pragma unroll
    for (int n = 0; n < Shape::kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[n][i] = 0;
#pragma unroll
      for (int d = 0; d < kDims / 4; ++d) {  // 32 dimensions
        std::uint32_t b[4];
        ldmatrix_x4(b, keys + Shape::offset(8 * n + lane % 8, 4 * d + lane / 8));
        multiply<KV>(s[n], queries[2 * d], b[0], b[1]);
        multiply<KV>(s[n], queries[2 * d + 1], b[2], b[3]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s[n][i] *= factor;
        if (masked && first + 8 * n + 2 * (lane % 4) + i % 2 >= seen[i / 2])
          s[n][i] = -INFINITY;
      }
    }
  }

  /// Turns scores into weights relative to the largest so far, to which what was summed is
  /// brought as well.
  __device__ __forceinline__ void soften(float (&s)[Shape::kKeys / 8][4]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float m = largest[r];
#pragma unroll
      for (int n = 0; n < Shape::kKeys / 8; ++n)
        m = fmaxf(m, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(kAllLanes, m, 1));
      m = fmaxf(m, __shfl_xor_sync(kAllLanes, m, 2));
      // While no key was seen there is no largest, and the weights are zero.
      const float base = m == -INFINITY ? 0.0f : m;
      const float factor = exp2f(largest[r] - base);
      largest[r] = m;
      sum[r] *= factor;
#pragma unroll
      for (int n = 0; n < Shape::kKeys / 8; ++n)
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; ++i) {
          s[n][i] = exp2f(s[n][i] - base);
          sum[r] += s[n][i];
        }
#pragma unroll
      for (int d = 0; d < kDims; ++d) {
        mixed[d][2 * r] *= factor;
        mixed[d][2 * r + 1] *= factor;
      }
    }
  }

  /// mixed += weights x values. What a lane holds of the scores of 16 keys is what it has
  /// to hold of A.
  template <class KV>
  __device__ __forceinline__ void mix(const float (&s)[Shape::kKeys / 8][4],
                                      const unsigned char* values) {
    const int lane = int(threadIdx.x % 32);
#pragma unroll
    for (int j = 0; j < Shape::kKeys / 16; ++j) {
      std::uint32_t a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = pack_pair<KV>(s[2 * j + i / 2][i % 2 * 2], s[2 * j + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int d = 0; d < kDims; d += 2) {
        std::uint32_t b[4];
        ldmatrix_x4_trans(b, values + Shape::offset(16 * j + lane % 16, d + lane / 16));
        multiply<KV>(mixed[d], a, b[0], b[1]);
        multiply<KV>(mixed[d + 1], a, b[2], b[3]);
      }
    }
  }
};

}  // namespace

/// Block x takes 64 rows of kv head blockIdx.y of sequence blockIdx.z / n_splits, and of
/// its keys split blockIdx.z % n_splits; the last rows, which see the most keys, come
/// first.
template <class KV, int kDim>
static __global__ void __launch_bounds__(FlashShape<kDim>::kThreads)
    flash_tensor(FlashArguments<KV> a) {
  using Shape = FlashShape<kDim>;
  extern __shared__ __align__(16) unsigned char dynamic_smem[];
  const auto tile = [](int stage, int values) {
    return dynamic_smem + Shape::kQueryBytes + (2 * stage + values) * Shape::kTileBytes;
  };
  const int lane = int(threadIdx.x % 32), warp_row = int(threadIdx.x / 32) * 16;
  const int kv_head = int(blockIdx.y), split = int(blockIdx.z) % a.n_splits;
  const int first_row = int(gridDim.x - 1 - blockIdx.x) * Shape::kRows;
  const FlashSequence sequence(a, int(blockIdx.z) / a.n_splits, split);
  if (first_row >= sequence.n_rows()) return;
  const KvRows<KV> keys = flash_rows(a.k, a, sequence, kv_head);
  const KvRows<KV> values = flash_rows(a.v, a, sequence, kv_head);
  const int last_row = min(first_row + Shape::kRows, sequence.n_rows()) - 1;
  // Keys before `all_see` are seen by every row of the block, keys from `end` on by none.
  const int all_see = sequence.seen_end(first_row), end = sequence.seen_end(last_row);
  const auto copy = [&](int first, int stage) {
    copy_tile<Shape>(tile(stage, 0), keys, first, end);
    copy_tile<Shape>(tile(stage, 1), values, first, end);
    cp_async_commit();
  };

  if (sequence.begin < end) copy(sequence.begin, 0);
  store_queries<Shape>(dynamic_smem, a, sequence, kv_head, first_row);
  __syncthreads();  // the queries are there
  FlashRows<Shape> rows;
#pragma unroll
  for (int d = 0; d < Shape::kChunks / 2; ++d)
    ldmatrix_x4(rows.queries[d],
                dynamic_smem + Shape::offset(warp_row + lane % 16, 2 * d + lane / 16));
  int row[2], seen[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    row[r] = first_row + warp_row + lane / 4 + 8 * r;
    seen[r] = sequence.seen_end(min(row[r], last_row));
  }
  int stage = 0;
  for (int first = sequence.begin; first < end; first += Shape::kKeys, stage ^= 1) {
    cp_async_wait<0>();
    __syncthreads();  // this tile is there for all, and all are done with the other stage
    if (first + Shape::kKeys < end) copy(first + Shape::kKeys, stage ^ 1);
    float s[Shape::kKeys / 8][4];
    rows.template scores<KV>(s, tile(stage, 0), a.scale * kLog2E, first, seen,
                             first + Shape::kKeys > all_see);
    rows.soften(s);
    rows.template mix<KV>(s, tile(stage, 1));
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = rows.sum[r];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    if (row[r] > last_row) continue;
    const std::int64_t slot = flash_slot(a, split, sequence.vector_of(kv_head, row[r]));
    const float inverse = sum == 0 ? 0.0f : 1.0f / sum;
#pragma unroll
    for (int d = 0; d < Shape::kChunks; ++d)
      *reinterpret_cast<float2*>(a.out + slot * kDim + 8 * d + 2 * (lane % 4)) =
          make_float2(rows.mixed[d][2 * r] * inverse, rows.mixed[d][2 * r + 1] * inverse);
    if (lane % 4 == 0) a.lse[slot] = lse_of(rows.largest[r], sum);
  }
}

}  // namespace lab::LAB_GPU
