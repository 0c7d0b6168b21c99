#include <cmath>
#include <limits>

#include "kernels/linear_support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

DType any_quantized_dtype() {
  return static_cast<DType>(GENERATE(filter(
      [](int d) { return is_quantized(static_cast<DType>(d)); }, range(0, kDTypeCount))));
}

/// Activations as the definition rounds them: each block of 32 to multiples of its largest
/// magnitude over 127.
std::vector<float> rounded(const std::vector<float>& x) {
  std::vector<float> out;
  for (std::size_t b = 0; b < x.size(); b += 32) {
    float largest = 0;
    for (std::size_t i = b; i < b + 32; ++i) largest = std::max(largest, std::abs(x[i]));
    const float scale = largest / 127, inverse = largest >= 0x1p-120f ? 127 / largest : 0;
    for (std::size_t i = b; i < b + 32; ++i)
      out.push_back(scale * std::nearbyint(x[i] * inverse));
  }
  return out;
}
Exact rounded_product(LinearProblem p) {
  p.x = rounded(p.x);
  return exact_product(p);
}

std::vector<float> apply_int8(const LinearProblem& p) {
  Guarded<float> y(p.n_tokens * p.rows);
  cpu::Linear(p.weights())(y.view({p.n_tokens, p.rows}), p.input(), Activations::int8);
  REQUIRE(y.intact());
  return {y.data(), y.data() + y.size()};
}

/// With every instruction set, against the product of the rounded activations.
void check_int8(const LinearProblem& p) {
  INFO(p.name());
  const Exact exact = rounded_product(p);
  each_instruction_set([&] { check_close(apply_int8(p).data(), exact); });
}

}  // namespace

TEST_CASE("int8: the layer is the product of the rounded activations") {
  const DType dtype = any_quantized_dtype();
  for (const std::int64_t cols : cols_of(dtype))
    for (const std::int64_t rows : {1, 16, 17, 40})
      for (const std::int64_t n_tokens : {1, 2, 3, 4, 5, 8, 9, 17, 33}) {
        if (rows * cols * n_tokens > 300000) continue;
        check_int8({dtype, rows, cols, n_tokens, 3});
      }
}

TEST_CASE("int8: the error against f32 activations is that of rounding to 8 bits") {
  const DType dtype = any_quantized_dtype();
  const std::int64_t cols = cols_of(dtype).back();
  const LinearProblem p(dtype, 50, cols, 7, 4);
  const Exact exact = exact_product(p);
  std::vector<float> w(std::size_t(p.rows * cols));
  cpu::dequantize({w.data(), {p.rows * cols}}, dtype, p.bytes.data());
  each_instruction_set([&] {
    INFO(p.name());
    const std::vector<float> y = apply_int8(p);
    double error2 = 0, norm2 = 0;
    for (std::int64_t t = 0; t < p.n_tokens; ++t)
      for (std::int64_t r = 0; r < p.rows; ++r) {
        double bound = 0;  // half a step for each activation
        for (std::int64_t c = 0; c < cols; ++c) {
          float largest = 0;
          for (std::int64_t i = c / 32 * 32; i < c / 32 * 32 + 32; ++i)
            largest = std::max(largest, std::abs(p.x[std::size_t(t * cols + i)]));
          bound += std::abs(w[std::size_t(r * cols + c)]) * largest / 127 / 2;
        }
        const std::size_t i = std::size_t(t * p.rows + r);
        const double error = y[i] - exact.y[i];
        REQUIRE(std::abs(error) <= bound * 1.001 + kRelative * exact.magnitude[i]);
        error2 += error * error, norm2 += exact.y[i] * exact.y[i];
      }
    REQUIRE(std::sqrt(error2 / norm2) <= 0.015);
    REQUIRE(std::sqrt(error2 / norm2) >= 0.001);  // else the activations were not rounded
  });
}

TEST_CASE("int8: extreme codes and activations do not saturate") {
  const DType dtype = any_quantized_dtype();
  for (const int byte : {0x00, 0x80, 0xff, 0x7f})
    for (const int signs : {0, 1, 2}) {
      LinearProblem p(dtype, 16, 256, 2, 8);
      // Every code and K scale at one end of its range.
      std::fill(p.bytes.begin(), p.bytes.end(), std::byte(byte));
      Rng rng(8);
      put_random_scales(rng, dtype, p.bytes);
      for (std::size_t i = 0; i < p.x.size(); ++i)
        p.x[i] = signs == 0 || (signs == 1 && i % 2 == 0) || (signs == 2 && i % 3 == 0)
                     ? 3.0f
                     : -3.0f;
      check_int8(p);
    }
}

TEST_CASE("int8: an outlier takes the precision of its block only") {
  LinearProblem p(any_quantized_dtype(), 33, 512, 6, 12);
  for (std::int64_t t = 0; t < 6; ++t) p.x[std::size_t(t * 512 + 70 + t)] = 1000;
  check_int8(p);
}

TEST_CASE("int8: blocks of zeros, tiny and huge activations") {
  for (const float scale : {0.0f, 1e-42f, 1e-37f, 1e-30f, 1e30f}) {
    LinearProblem p(any_quantized_dtype(), 17, 256, 5, 13);
    for (std::size_t i = 0; i < p.x.size(); ++i)
      if (i / 32 % 2 == 0) p.x[i] *= scale;
    check_int8(p);
  }
}

TEST_CASE("int8: a NaN or an infinity makes its token NaN, and no other") {
  const DType dtype = any_quantized_dtype();
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {NAN, -NAN, inf, -inf})
    for (const std::int64_t n_tokens : {1, 3, 5, 14})
      for (const std::int64_t col : {0, 15, 16, 255}) {
        LinearProblem p(dtype, 20, 256, n_tokens, 2);
        const std::int64_t token = n_tokens / 2;
        p.x[std::size_t(token * 256 + col)] = bad;
        if (col == 16) p.x[std::size_t(token * 256)] = -bad;  // their sum is NaN
        each_instruction_set([&] {
          const std::vector<float> y = apply_int8(p);
          for (std::size_t i = 0; i < y.size(); ++i)
            REQUIRE(std::isnan(y[i]) == (std::int64_t(i) / 20 == token));
        });
      }
}

TEST_CASE("int8: a token's result is the same bits in any company and on any threads") {
  const DType dtype = any_quantized_dtype();
  const LinearProblem p(dtype, 200, 768, 530, 5);
  const cpu::Linear layer(p.weights());
  each_instruction_set([&] {
    if (std::string(cpu::instruction_set()) == "plain" && dtype != DType::q4_0) return;
    INFO(p.name());
    Guarded<float> together(p.n_tokens * p.rows);
    set_n_threads(3);
    layer(together.view({p.n_tokens, p.rows}), p.input(), Activations::int8);
    set_n_threads(1);
    std::int64_t t = 0;
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 11, 40}) {
      Guarded<float> some(n * p.rows);
      layer(some.view({n, p.rows}), p.input().rows(t, t + n), Activations::int8);
      REQUIRE(std::memcmp(some.data(), together.data() + t * p.rows,
                          std::size_t(n * p.rows) * sizeof(float)) == 0);
      t += n;
    }
  });
  set_n_threads(1);
}

TEST_CASE("int8: weights of floats read f32 activations") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const LinearProblem p(dtype, 20, 70, 6, 5);
    each_instruction_set([&] { check_close(apply_int8(p).data(), exact_product(p)); });
  }
}
