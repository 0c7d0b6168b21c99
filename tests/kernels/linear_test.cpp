#include "kernels/linear_support.hpp"

using namespace lab;
using namespace lab::test;

TEST_CASE("the reference linear layer is the product in double precision") {
  const DType dtype = any_dtype();
  for (const std::int64_t cols : cols_of(dtype)) {
    const LinearProblem p(dtype, 17, cols, 3, 11);
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
        const LinearProblem p(dtype, rows, cols, n_tokens, 7);
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
  const LinearProblem p(dtype, 200, 768, 530, 5);
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
  const LinearProblem p(DType::q8_0, 20, 64, 2, 1);
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
    LinearProblem p(dtype, 20, 512, n, 3);
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
      LinearProblem p(DType::q4_0, 16, 64, 2, 9);
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
  const LinearProblem p(DType::q8_0, 20, 64, 2, 1);
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
  const LinearProblem p(DType::q4_0, 32, 64, 1, 1);
  const cpu::Linear layer(p.weights());
  CHECK(layer.rows() == 32);
  CHECK(layer.cols() == 64);
  CHECK(layer.dtype() == DType::q4_0);
  CHECK(layer.bytes() == p.bytes.size());
}
