#include "cuda/gemm.cuh"

namespace lab::LAB_GPU {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr unsigned kAllLanes = 0xffffffffu;

struct SplitArguments {
  const float* x;
  std::int64_t n_tokens, cols, blocks;
  bool aligned;
  __half *hi, *lo;
  float *inverse, *totals;  // totals may be null
  std::int64_t padded_tokens;
  int total_quads;  // columns of a total, over 4
};

/// The power of two that brings `largest` into [2^14, 2^15), so that its f16 has a bit to
/// spare and the smallest have most; 2^126 if that is not a float, 2^-114 for infinity.
__device__ float power_of_two(float largest) {
  const int exponent = int(__float_as_uint(largest) >> 23) - 127;
  if (largest == 0.0f) return 1.0f;
  return __uint_as_float(unsigned(min(14 - exponent, 126) + 127) << 23);
}

/// The largest magnitude of a token, NaN aside, for all threads.
__device__ float largest_of(const float* x, std::int64_t cols) {
  __shared__ float warps[kWarps];
  float largest = 0;
  for (std::int64_t c = threadIdx.x; c < cols; c += kThreads)
    largest = fmaxf(largest, fabsf(x[c]));
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, offset));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  __syncthreads();  // the parts of all warps are there
  for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, warps[w]);
  return largest;
}

/// A block a token: x * 2^k = hi + lo, and sums of x * 2^k. NaN stays NaN, and infinity
/// becomes infinity + NaN.
__global__ void __launch_bounds__(kThreads) split_kernel(SplitArguments a) {
  const std::int64_t t = blockIdx.x;
  const float* x = a.x + t * a.cols;
  const std::int64_t cols = t < a.n_tokens ? a.cols : 0;  // padding is zero
  const float power = power_of_two(largest_of(x, cols));
  if (threadIdx.x == 0) a.inverse[t] = 1.0f / power;
  const std::int64_t quads = 8 * a.blocks;
  for (std::int64_t first = 0; first < quads; first += kThreads) {
    const std::int64_t q = first + threadIdx.x;
    const float4 v = load_quad(x, 4 * q, cols, a.aligned);
    const float4 s = make_float4(v.x * power, v.y * power, v.z * power, v.w * power);
    const __half2 hi[2] = {__floats2half2_rn(s.x, s.y), __floats2half2_rn(s.z, s.w)};
    const float2 r0 = __half22float2(hi[0]), r1 = __half22float2(hi[1]);
    const __half2 lo[2] = {__floats2half2_rn(s.x - r0.x, s.y - r0.y),
                           __floats2half2_rn(s.z - r1.x, s.w - r1.y)};
    if (q < quads) {
      const std::int64_t at = t * quads + q;
      reinterpret_cast<uint2*>(a.hi)[at] = make_uint2(bits_of(hi[0]), bits_of(hi[1]));
      reinterpret_cast<uint2*>(a.lo)[at] = make_uint2(bits_of(lo[0]), bits_of(lo[1]));
    }
    if (a.totals == nullptr) continue;
    float total = (s.x + s.y) + (s.z + s.w);
    for (int offset = 1; offset < a.total_quads; offset *= 2)
      total += __shfl_xor_sync(kAllLanes, total, offset);
    if (q < quads && q % a.total_quads == 0)
      a.totals[q / a.total_quads * a.padded_tokens + t] = total;
  }
}

/// Device memory that is given back in the order of the stream.
struct Scratch {
  std::byte* data;
  Stream stream;
  Scratch(std::size_t bytes, Stream s) : data(allocate(bytes, s)), stream(s) {}
  Scratch(const Scratch&) = delete;
  ~Scratch() { release(data, stream); }
};

template <class F, class T>
void multiply(const Product& p, Stream stream) {
  using W = WeightPart<F>;
  const std::int64_t blocks = p.weights.blocks;
  const std::int64_t tokens = ceil_div(p.n_tokens, T::kTokens) * T::kTokens;
  const std::int64_t halves = tokens * blocks * kPlaneBlock;  // a multiple of 16 bytes
  const std::int64_t totals = W::kMinima ? tokens * blocks * W::kGroups : 0;
  Scratch scratch(std::size_t(2 * halves) * sizeof(__half) +
                      std::size_t(tokens + totals) * sizeof(float),
                  stream);
  __half* hi = reinterpret_cast<__half*>(scratch.data);
  float* inverse = reinterpret_cast<float*>(hi + 2 * halves);
  const SplitArguments split{
      p.x,         p.n_tokens,        p.cols,
      blocks,      can_load_quads(p), hi,
      hi + halves, inverse,           W::kMinima ? inverse + tokens : nullptr,
      tokens,      8 / W::kGroups};
  launch(split_kernel, {dim3(unsigned(tokens)), dim3(kThreads), 0, stream}, split);
  launch_gemm<F, T>({p.weights,
                     {hi, hi + halves, inverse, inverse + tokens, tokens},
                     p.rows,
                     p.n_tokens,
                     p.y},
                    stream);
}

}  // namespace

void gemm(const Product& p, Stream stream) {
  with_format(p.dtype, [&](auto format) {
    using F = decltype(format);
    p.n_tokens <= 64 ? multiply<F, SmallTile>(p, stream)
                     : multiply<F, LargeTile>(p, stream);
  });
}

}  // namespace lab::LAB_GPU
