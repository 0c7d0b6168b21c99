#include "lab/kernels/linear.hpp"
#include "kernels/support.hpp"
#include "lab/kernels/dequantize.hpp"

using namespace lab;
using namespace lab::test;

namespace {

constexpr double kAbsolute = 1e-6, kRelative = 1e-5;

struct Problem {
  DType dtype;
  std::int64_t rows, cols, n_tokens;
  std::vector<std::byte> bytes;
  std::vector<float> x;

  Problem(DType d, std::int64_t r, std::int64_t c, std::int64_t t, std::uint64_t seed)
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
Exact exact_product(const Problem& p) {
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
void check_close(float* y, const Exact& e) {
  for (std::size_t i = 0; i < e.y.size(); ++i) {
    const double error = std::abs(y[i] - e.y[i]);
    if (!(error <= kAbsolute + kRelative * e.magnitude[i]))
      FAIL("[" << i << "] is " << y[i] << " instead of " << e.y[i]);
  }
}

std::vector<std::int64_t> cols_of(DType dtype) {
  if (!is_quantized(dtype)) return {1, 31, 32, 33, 127, 300, 1025};
  if (dtype_info(dtype).block_size == 256) return {256, 512, 768};
  return {32, 96, 288, 576};
}
DType any_dtype() { return static_cast<DType>(GENERATE(range(0, kDTypeCount))); }

}  // namespace

TEST_CASE("the reference linear layer is the product in double precision") {
  const DType dtype = any_dtype();
  for (const std::int64_t cols : cols_of(dtype)) {
    const Problem p(dtype, 17, cols, 3, 11);
    INFO(p.name());
    Guarded<float> y(p.n_tokens * p.rows);
    cpu::reference::linear(y.view({p.n_tokens, p.rows}), p.input(), p.weights());
    check_close(y.data(), exact_product(p));
    REQUIRE(y.intact());
  }
}

TEST_CASE("the packed linear layer is the product in double precision") {
  const DType dtype = any_dtype();
  for (const std::int64_t cols : cols_of(dtype))
    for (const std::int64_t rows : {1, 16, 17, 40})
      for (const std::int64_t n_tokens : {1, 2, 3, 4, 5, 8, 9, 21}) {
        if (rows * cols * n_tokens > 300000) continue;
        const Problem p(dtype, rows, cols, n_tokens, 7);
        INFO(p.name());
        const cpu::Linear layer(p.weights());
        const Exact exact = exact_product(p);
        each_instruction_set([&] {
          Guarded<float> y(n_tokens * rows);
          layer(y.view({n_tokens, rows}), p.input());
          check_close(y.data(), exact);
          REQUIRE(y.intact());
        });
      }
}

TEST_CASE(
    "a token's result is the same bits in any company and with any number of threads") {
  const DType dtype = any_dtype();
  const Problem p(dtype, 200, 768, 530, 5);
  const cpu::Linear layer(p.weights());
  each_instruction_set([&] {
    if (std::string(cpu::instruction_set()) == "plain" && dtype != DType::q4_0) return;
    INFO(p.name());
    Guarded<float> together(p.n_tokens * p.rows);
    set_n_threads(3);
    layer(together.view({p.n_tokens, p.rows}), p.input());
    set_n_threads(1);
    std::int64_t t = 0;
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 11, 40}) {
      Guarded<float> some(n * p.rows);
      layer(some.view({n, p.rows}), p.input().rows(t, t + n));
      REQUIRE(std::memcmp(some.data(), together.data() + t * p.rows,
                          std::size_t(n * p.rows) * sizeof(float)) == 0);
      t += n;
    }
    Guarded<float> last(p.rows);
    layer(last.view({1, p.rows}), p.input().rows(529, 530));
    REQUIRE(std::memcmp(last.data(), together.data() + 529 * p.rows,
                        std::size_t(p.rows) * sizeof(float)) == 0);
  });
  set_n_threads(1);
}

TEST_CASE("no tokens, no rows and no columns are legal") {
  const Problem p(DType::q8_0, 20, 64, 2, 1);
  const cpu::Linear layer(p.weights());
  Guarded<float> nothing(0);
  layer(nothing.view({0, 20}), p.input().rows(0, 0));
  CHECK(nothing.intact());

  const cpu::Linear no_rows({p.bytes.data(), DType::q8_0, 0, 64});
  no_rows(nothing.view({2, 0}), p.input());
  CHECK(nothing.intact());
  const cpu::Linear empty;
  empty(nothing.view({0, 0}), view_of(p.x, {0, 0}));

  each_instruction_set([&] {
    for (const std::int64_t n : {2, 9}) {
      for (const DType dtype : {DType::f32, DType::q8_0, DType::q6_k}) {
        const cpu::Linear no_cols({p.bytes.data(), dtype, 20, 0});
        Guarded<float> zeros(n * 20);
        no_cols(zeros.view({n, 20}), view_of(p.x, {n, 0}));
        for (std::int64_t i = 0; i < zeros.size(); ++i) REQUIRE(zeros[i] == 0);
      }
    }
  });
}

TEST_CASE("NaN and infinity stay in their token and spoil all of its results") {
  const DType dtype = any_dtype();
  for (const std::int64_t n : {2, 9}) {
    Problem p(dtype, 20, 512, n, 3);
    for (const float bad : {NAN, INFINITY}) {
      p.x[512 + 77] = bad;
      const cpu::Linear layer(p.weights());
      each_instruction_set([&] {
        INFO(p.name());
        Guarded<float> y(n * 20);
        layer(y.view({n, 20}), p.input());
        for (std::int64_t i = 0; i < y.size(); ++i)
          REQUIRE(std::isfinite(y[i]) == (i / 20 != 1));
      });
    }
  }
}

TEST_CASE("large and small activations keep their precision") {
  each_instruction_set([] {
    for (const float scale : {1e-20f, 1e20f}) {
      Problem p(DType::q4_0, 16, 64, 2, 9);
      for (float& v : p.x) v *= scale;
      Guarded<float> y(32);
      cpu::Linear(p.weights())(y.view({2, 16}), p.input());
      const Exact e = exact_product(p);
      for (std::size_t i = 0; i < 32; ++i)
        REQUIRE(std::abs(y[std::int64_t(i)] - e.y[i]) <= kRelative * e.magnitude[i]);
    }
  });
}

TEST_CASE("a linear layer says which shapes disagree") {
  const Problem p(DType::q8_0, 20, 64, 2, 1);
  const cpu::Linear layer(p.weights());
  std::vector<float> y(64);
  const HostView<float, 2> wrong_tokens{y.data(), {3, 20}}, wrong_rows{y.data(), {2, 21}};
  const HostView<float, 2> right{y.data(), {2, 20}};
  for (const auto& f :
       {std::function(
            [&](HostView<float, 2> out, HostView<const float, 2> x) { layer(out, x); }),
        std::function([&](HostView<float, 2> out, HostView<const float, 2> x) {
          cpu::reference::linear(out, x, p.weights());
        })}) {
    CHECK(message_of([&] { f(wrong_tokens, p.input()); }) ==
          "linear: y is (n_tokens=3, out=20) but x is (n_tokens=2, in=64); give both the "
          "same "
          "n_tokens");
    CHECK(message_of([&] { f(wrong_rows, p.input()); }) ==
          "linear: weights are (out=20, in=64) but y is (n_tokens=2, out=21)");
    CHECK(message_of([&] {
            f(right, view_of(p.x, {2, 32}));
          }) == "linear: weights are (out=20, in=64) but x is (n_tokens=2, in=32)");
  }
  CHECK(message_of([&] {
          cpu::Linear({p.bytes.data(), DType::q4_k, 2, 64});
        }) == "linear: weights are (out=2, in=64) but Q4_K stores rows in blocks of 256");
  CHECK(message_of([&] {
          cpu::Linear({p.bytes.data(), DType::f32, -1, 64});
        }) == "linear: weights are (out=-1, in=64); give sizes >= 0");
}

TEST_CASE("a layer knows its shape, and packing adds no more than padding") {
  const Problem p(DType::q4_0, 32, 64, 1, 1);
  const cpu::Linear layer(p.weights());
  CHECK(layer.rows() == 32);
  CHECK(layer.cols() == 64);
  CHECK(layer.dtype() == DType::q4_0);
  CHECK(layer.bytes() == p.bytes.size());
}
