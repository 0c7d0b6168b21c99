#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kDim = 64;          // head_dim
constexpr int kTile = 32;         // rows of a block, and keys of a step
constexpr int kRows = 4;          // of a warp: 8 warps a block
constexpr int kPitch = kDim + 1;  // floats from key to key: 32 keys, 32 banks

// [region kernel]
/// Copies rows first .. first + 31; zeros where there are none.
template <int kWidth>
__device__ void load(float (&to)[kTile][kWidth], const float* rows, int first, int end) {
  for (int i = threadIdx.x; i < kTile * kDim; i += 256) {
    const int r = i / kDim, d = i % kDim;
    to[r][d] = first + r < end ? rows[(first + r) * kDim + d] : 0;
  }
}

__global__ void __launch_bounds__(256)
    online(float* y, const float* q, const float* k, const float* v, int T, int N) {
  __shared__ float qs[kTile][kDim], ks[kTile][kPitch], vs[kTile][kDim];
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * kRows;
  const int t0 = blockIdx.x * kTile, position = N - T + t0;  // of the first row
  const int end = min(position + kTile, N);                  // keys that some row sees
  load(qs, q, t0, T);
  float max[kRows], sum[kRows] = {}, mixed[kRows][2] = {};
  for (float& m : max) m = -INFINITY;
  for (int n0 = 0; n0 < end; n0 += kTile) {
    load(ks, k, n0, N);
    load(vs, v, n0, N);
    __syncthreads();
    float s[kRows] = {};  // of the lane's key
    for (int d = 0; d < kDim; ++d) {
      const float key = ks[lane][d];
      for (int r = 0; r < kRows; ++r) s[r] += qs[row + r][d] * key;
    }
    for (int r = 0; r < kRows; ++r) {
      const bool seen = n0 + lane < end && n0 + lane <= position + row + r;
      s[r] = seen ? s[r] * 0.125f : -INFINITY;  // 1 / sqrt(kDim)
      const float m = fmaxf(max[r], warp_reduce(s[r], Larger{}));
      const float shrink = expf(max[r] - m);  // 0 at first; every row sees key 0
      max[r] = m;
      s[r] = expf(s[r] - m);
      sum[r] = sum[r] * shrink + s[r];
      for (float& o : mixed[r]) o *= shrink;
    }
    for (int j = 0; j < kTile; ++j) {
      const float v0 = vs[j][lane], v1 = vs[j][lane + 32];
      for (int r = 0; r < kRows; ++r) {
        const float weight = __shfl_sync(0xffffffffu, s[r], j);
        mixed[r][0] += weight * v0, mixed[r][1] += weight * v1;
      }
    }
    __syncthreads();  // the tiles were read by all before the next ones come
  }
  for (int r = 0; r < kRows; ++r) {
    const float total = warp_sum(sum[r]);
    if (t0 + row + r >= T) continue;
    float* to = &y[(t0 + row + r) * kDim + lane];
    to[0] = mixed[r][0] / total, to[32] = mixed[r][1] / total;
  }
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  launch(online, {dim3(tiles(T, kTile)), dim3(256), 0, stream}, o.y.data, o.x.data,
         o.w.data, o.v.data, T, N);
}

// [region prediction]
Traffic predict(Size s) {
  const auto blocks = s.T / 32, before = (s.N - s.T) / 32;
  const auto steps =
      blocks * before + blocks * (blocks + 1) / 2;  // the mask skips the rest
  const auto warps = blocks * 8, warp_steps = steps * 8;
  const auto copies = warps * 8 + warp_steps * 16;  // 32 floats of q; of k and v
  return {.global_load = {.requests = copies, .units = copies * 4},
          .global_store = {.requests = warps * 8, .units = warps * 8 * 4},
          .shared_load = {.requests = warp_steps * (64 * 5 + 32 * 2),  // k, 4 q; v twice
                          .units = warp_steps * (64 * 5 + 32 * 2)},
          .shared_store = {.requests = copies, .units = copies}};
}
// [endregion]

}  // namespace

Rung attention_online() {
  return {
      .name = "online softmax",
      .file = "attention/2_online.cu",
      .idea =
          "A block keeps 32 rows of q and meets the keys in tiles of 32. Scores and "
          "weights "
          "stay in registers: with the running maximum and sum of the softmax ladder, what "
          "was mixed so far is scaled whenever a larger score comes. k and v are read once "
          "for 32 rows, 2 T N K / 32 numbers without a mask: with room for M = 3 x 32 K of "
          "them in shared memory that is 6 T N K^2 / M, theorem 2 with its constant. The "
          "mask halves it, for tiles that no row sees are not loaded.",
      .run = run,
      .predict = predict,
      .multiple_k = kDim,
      .longest = kDim};
}

}  // namespace lab::LAB_GPU
