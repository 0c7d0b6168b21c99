/// @file
/// What the tests of linear layers share: problems, and their products in double precision.
#pragma once

#include <string>
#include <vector>

#include "kernels/support.hpp"
#include "lab/kernels/dequantize.hpp"
#include "lab/kernels/linear.hpp"

namespace lab::test {

inline constexpr double kAbsolute = 1e-6, kRelative = 1e-5;

struct LinearProblem {
  DType dtype;
  std::int64_t rows, cols, n_tokens;
  std::vector<std::byte> bytes;
  std::vector<float> x;

  LinearProblem(DType d, std::int64_t r, std::int64_t c, std::int64_t t, std::uint64_t seed)
      : dtype(d), rows(r), cols(c), n_tokens(t) {
    Rng rng(seed);
    bytes = random_weights(rng, dtype, rows, cols);
    x = random_floats(rng, n_tokens * cols);
  }
  HostWeightView weights() const { return {bytes.data(), dtype, rows, cols}; }
  HostView<const float, 2> input() const { return view_of(x, {n_tokens, cols}); }
  std::string name() const {
    return fmt::format("{} rows={} cols={} n_tokens={}", lab::name(dtype), rows, cols,
                       n_tokens);
  }
};

/// The sum of |w * x|, which rounding errors are proportional to, and the product itself.
struct Exact {
  std::vector<double> y, magnitude;
};
inline Exact exact_product(const LinearProblem& p) {
  std::vector<float> w(std::size_t(p.rows * p.cols));
  cpu::dequantize({w.data(), {p.rows * p.cols}}, p.dtype, p.bytes.data());
  Exact e;
  for (std::int64_t t = 0; t < p.n_tokens; ++t)
    for (std::int64_t r = 0; r < p.rows; ++r) {
      double sum = 0, magnitude = 0;
      for (std::int64_t c = 0; c < p.cols; ++c) {
        const double product =
            double(w[std::size_t(r * p.cols + c)]) * p.x[std::size_t(t * p.cols + c)];
        sum += product, magnitude += std::abs(product);
      }
      e.y.push_back(sum), e.magnitude.push_back(magnitude);
    }
  return e;
}
inline void check_close(const float* y, const Exact& e) {
  for (std::size_t i = 0; i < e.y.size(); ++i) {
    const double error = std::abs(y[i] - e.y[i]);
    if (!(error <= kAbsolute + kRelative * e.magnitude[i]))
      FAIL("[" << i << "] is " << y[i] << " instead of " << e.y[i]);
  }
}

inline std::vector<std::int64_t> cols_of(DType dtype) {
  if (!is_quantized(dtype)) return {1, 31, 32, 33, 127, 300, 1025};
  if (dtype_info(dtype).block_size == 256) return {256, 512, 768};
  return {32, 96, 288, 576};
}
inline DType any_dtype() { return static_cast<DType>(GENERATE(range(0, kDTypeCount))); }

}  // namespace lab::test
