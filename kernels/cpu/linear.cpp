#include "lab/kernels/linear.hpp"

#include <cstring>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/kernels/check.hpp"
#include "lab/kernels/dequantize.hpp"

namespace lab::cpu {

void reference::linear(HostView<float, 2> y, HostView<const float, 2> x, HostWeightView weights) {
  check_weights(weights.dtype, weights.rows, weights.cols);
  check_linear(y.shape, x.shape, weights.rows, weights.cols);
  std::vector<float> row(static_cast<std::size_t>(weights.cols));
  for (std::int64_t r = 0; r < weights.rows; ++r) {
    dequantize({row.data(), {weights.cols}}, weights.dtype, weights.row(r));
    for (std::int64_t t = 0; t < x.shape[0]; ++t) {
      float sum = 0;
      for (std::int64_t c = 0; c < weights.cols; ++c) sum += x[t][c] * row[std::size_t(c)];
      y[t].data[r] = sum;
    }
  }
}

Linear::Linear(HostWeightView weights)
    : dtype_(weights.dtype), rows_(weights.rows), cols_(weights.cols) {
  check_weights(dtype_, rows_, cols_);
  packed_ = Buffer(static_cast<std::size_t>(weights.bytes()));
  std::memcpy(packed_.data(), weights.data, packed_.size());
}

void Linear::operator()(HostView<float, 2> y, HostView<const float, 2> x) const {
  check_linear(y.shape, x.shape, rows_, cols_);
  reference::linear(y, x, {packed_.data(), dtype_, rows_, cols_});
}

}  // namespace lab::cpu
