#include "ladders/rung.hpp"
#include "ladders/warp.hpp"

namespace lab::LAB_GPU {
namespace {

// [region kernel]
/// A thread for each score; the lanes of a warp are 32 keys.
__global__ void __launch_bounds__(256)
    naive_scores(float* s, const float* q, const float* k, int T, int N, int K) {
  const int n = blockIdx.x * 32 + threadIdx.x, t = blockIdx.y * 8 + threadIdx.y;
  if (t >= T || n >= N) return;
  float dot = 0;
  for (int d = 0; d < K; ++d) dot += q[t * K + d] * k[n * K + d];
  s[t * N + n] = n <= N - T + t ? dot * rsqrtf(float(K)) : -INFINITY;
}

/// A warp for each row, in place.
__global__ void __launch_bounds__(256) naive_softmax(float* s, int T, int N) {
  const int t = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (t >= T) return;
  s += t * N;
  float max = -INFINITY, sum = 0;
  for (int n = lane; n < N; n += 32) max = fmaxf(max, s[n]);
  max = warp_reduce(max, Larger{});
  for (int n = lane; n < N; n += 32) sum += expf(s[n] - max);
  sum = warp_sum(sum);
  for (int n = lane; n < N; n += 32) s[n] = expf(s[n] - max) / sum;
}

/// A thread for each y[t, d]; the lanes of a warp are 32 dimensions.
__global__ void __launch_bounds__(256)
    naive_mix(float* y, const float* s, const float* v, int T, int N, int K) {
  const int d = blockIdx.x * 32 + threadIdx.x, t = blockIdx.y * 8 + threadIdx.y;
  if (t >= T || d >= K) return;
  float sum = 0;
  for (int n = 0; n < N; ++n) sum += s[t * N + n] * v[n * K + d];
  y[t * K + d] = sum;
}
// [endregion]

void run(const Operands& o, Stream stream) {
  const auto [T, N, K] = extents(o);
  float* s = o.scores.data;
  launch(naive_scores, {dim3(tiles(N, 32), tiles(T, 8)), dim3(32, 8), 0, stream}, s,
         o.x.data, o.w.data, T, N, K);
  launch(naive_softmax, {dim3(tiles(T, 8)), dim3(256), 0, stream}, s, T, N);
  launch(naive_mix, {dim3(tiles(K, 32), tiles(T, 8)), dim3(32, 8), 0, stream}, o.y.data, s,
         o.v.data, T, N, K);
}

// [region prediction]
Traffic predict(Size s) {
  const auto scores = s.T * s.N / 32;  // in warps: 32 scores of one row, 4 sectors
  const auto results = s.T * s.K / 32;
  return {.global_load = {.requests = scores * (s.K * 2      // q and k
                                                + 3)         // max, sum, weights
                                      + results * s.N * 2,   // weights and v
                          .units = scores * (s.K * (1 + 32)  // one of q, 32 rows of k
                                             + 3 * 4) +
                                   results * s.N * (1 + 4)},  // one weight, a row of v
          .global_store = {.requests = scores * 2 + results,  // scores, weights, y
                           .units = (scores * 2 + results) * 4}};
}
// [endregion]

}  // namespace

Rung attention_naive() {
  return {
      .name = "naive",
      .file = "attention/1_naive.cu",
      .idea =
          "The formula in three kernels: all scores, a softmax of each row, the mix of the "
          "values. What one leaves for the next is a (T, N) matrix in global memory: it is "
          "written twice and read three times by neighbouring lanes, and then once more "
          "for "
          "each 32 dimensions. The masked half is computed as well. And, as in the naive "
          "gemm, 32 lanes read 32 rows of k.",
      .run = run,
      .predict = predict};
}

}  // namespace lab::LAB_GPU
