#include "lab/kernels/embedding.hpp"

#include "cuda/linear_kernels.hpp"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kThreads = 256;

/// Columns 4q to 4q + 3 of a row, decoded.
template <class F>
__device__ float4 decode_quad(const Planes& p, std::int64_t row, std::int64_t q) {
  float w[4];
  if constexpr (F::kQuantized) {
    const std::int64_t block = row * p.blocks + q / 8;
    const auto codes = F::Codes::load_half(p, block, int(q / 4 % 2));
    const float2 s = F::Scales::load(p, block).value(int(q / 4 % 2));
    std::uint32_t quad = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j)  // an index known at compile time keeps codes in registers
      if (j == q % 4) quad = codes.quad(j);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = s.x * quad_value<F::kZero>(quad, i);
      if constexpr (F::Scales::kMinima) w[i] = w[i] - s.y;
    }
  } else {
    constexpr std::int64_t kQuads = F::kPerVector / 4;
    const std::int64_t first = row * p.blocks * (kPlaneBlock / F::kPerVector);
    F::quad(load<uint4>(p.plane[kCodes], first + q / kQuads), int(q % kQuads), w);
  }
  return make_float4(w[0], w[1], w[2], w[3]);
}

struct Arguments {
  Planes table;
  std::int64_t vocab_size, model_dim;
  float* out;
  const std::int32_t* ids;
  bool aligned;  // out can be written in float4
};

/// A block a token, a thread four columns at a time.
template <class F>
__global__ void embedding_kernel(Arguments a) {
  const std::int64_t id = a.ids[blockIdx.x];
  float* out = a.out + blockIdx.x * a.model_dim;
  for (std::int64_t q = threadIdx.x; 4 * q < a.model_dim; q += kThreads) {
    const float nan = __uint_as_float(0x7fffffffu);
    float4 v = make_float4(nan, nan, nan, nan);
    if (id >= 0 && id < a.vocab_size) v = decode_quad<F>(a.table, id, q);
    if (a.aligned) {
      reinterpret_cast<float4*>(out)[q] = v;
    } else {
      const float w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (4 * q + i < a.model_dim) out[4 * q + i] = w[i];
    }
  }
}

}  // namespace

void embedding(DeviceView<float, 2> out, DeviceView<const std::int32_t, 1> ids,
               const Linear& table, Stream stream) {
  check_embedding(out.shape, ids.shape, table.dtype(), table.rows(), table.cols());
  if (out.size() == 0) return;
  const bool aligned = table.cols() % 4 == 0 &&
                       reinterpret_cast<std::uintptr_t>(out.data) % sizeof(float4) == 0;
  const Arguments a{planes_of(table), table.rows(), table.cols(),
                    out.data,         ids.data,     aligned};
  with_format(table.dtype(), [&](auto format) {
    launch(embedding_kernel<decltype(format)>,
           {dim3(unsigned(out.shape[0])), dim3(kThreads), 0, stream}, a);
  });
}

}  // namespace lab::LAB_GPU
