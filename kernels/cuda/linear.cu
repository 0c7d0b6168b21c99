#include "lab/kernels/linear.hpp"

#include <algorithm>
#include <vector>

#include "cuda/linear_kernels.hpp"
#include "lab/kernels/check.hpp"

namespace lab::LAB_GPU {
namespace {

/// Up to two passes over the weights, the second of them from the cache, are faster than
/// tiles of 32 tokens of which three quarters are padding.
constexpr std::int64_t kFewTokens = 2 * kGemvTokens;

Planes planes_of(const std::byte* data, const PlaneLayout& layout) {
  Planes planes{{}, layout.blocks};
  for (int p = 0; p < kPlanes; ++p) planes.plane[p] = data + layout.offset[p];
  return planes;
}

}  // namespace

Linear::Linear(HostWeightView weights, Stream stream)
    : dtype_(weights.dtype), rows_(weights.rows), cols_(weights.cols), stream_(stream) {
  check_weights(dtype_, rows_, cols_);
  const PlaneLayout layout = plane_layout(dtype_, rows_, cols_);
  // The kernels count pieces of sixteen bytes in 32 bits.
  if (rows_ * layout.blocks > std::int64_t{1} << 29)
    throw_error("linear: weights are (out=" + std::to_string(rows_) +
                ", in=" + std::to_string(cols_) +
                ") but a matrix of at most 2^34 weights was expected; split its rows");
  bytes_ = std::size_t(layout.bytes);
  if (bytes_ == 0) return;
  data_ = allocate(bytes_, stream);
  upload(weights);
}

void Linear::upload(HostWeightView weights) {
  // A band of rows is one range in each plane: it is packed in host memory and copied while
  // that is in the cache. A copy from pageable memory has read it when it returns.
  constexpr std::int64_t kBandBytes = 8 << 20;
  const PlaneLayout layout = plane_layout(dtype_, rows_, cols_);
  std::int64_t row_bytes = 0;
  for (const std::int64_t n : layout.row_bytes) row_bytes += n;
  const std::int64_t band = std::min(
      rows_, std::max<std::int64_t>(1, kBandBytes / std::max<std::int64_t>(1, row_bytes)));
  std::vector<std::byte> staging(std::size_t(band * row_bytes));
  for (std::int64_t first = 0; first < rows_; first += band) {
    const std::int64_t n = std::min(band, rows_ - first);
    std::byte* at[kPlanes];
    std::int64_t used = 0;
    for (int p = 0; p < kPlanes; ++p) {
      at[p] = staging.data() + used;
      used += n * layout.row_bytes[p];
    }
    pack_planes(weights, first, n, at);
    for (int p = 0; p < kPlanes; ++p)
      if (layout.row_bytes[p] > 0)
        copy_to_device(data_ + layout.offset[p] + first * layout.row_bytes[p], at[p],
                       std::size_t(n * layout.row_bytes[p]), stream_);
  }
}

Linear::Linear(Linear&& other) noexcept { *this = std::move(other); }
Linear& Linear::operator=(Linear&& other) noexcept {
  std::swap(dtype_, other.dtype_);
  std::swap(rows_, other.rows_);
  std::swap(cols_, other.cols_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  std::swap(stream_, other.stream_);
  return *this;
}
Linear::~Linear() {
  if (data_ != nullptr) release(data_, stream_);
}

Planes planes_of(const Linear& weights) {
  return planes_of(weights.data(),
                   plane_layout(weights.dtype(), weights.rows(), weights.cols()));
}

void Linear::operator()(DeviceView<float, 2> y, DeviceView<const float, 2> x,
                        Stream stream) const {
  check_linear(y.shape, x.shape, rows_, cols_);
  if (y.size() == 0) return;
  const Product p{planes_of(*this), dtype_, rows_, cols_, y.data, x.data, x.shape[0]};
  x.shape[0] <= kFewTokens || cols_ == 0 ? gemv(p, stream) : gemm(p, stream);
}

}  // namespace lab::LAB_GPU
