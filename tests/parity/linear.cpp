#include "lab/kernels/linear.hpp"
#include "lab/kernels/dequantize.hpp"
#include "lab/kernels/embedding.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

/// Of the sum of |x * w|, which rounding errors are proportional to.
constexpr double kRelative = 3e-6;

/// The product in double precision, and the sum of |x * w|.
struct Exact {
  std::vector<double> y, magnitude;
};

struct Problem {
  DType dtype;
  std::int64_t rows, cols, n_tokens;
  std::vector<std::byte> bytes;
  std::vector<float> x;

  Problem(DType d, std::int64_t r, std::int64_t c, std::int64_t t, std::uint64_t seed = 3)
      : dtype(d), rows(r), cols(c), n_tokens(t) {
    Rng rng(seed);
    bytes = random_weights(rng, dtype, rows, cols);
    x = random_floats(rng, n_tokens * cols);
  }
  HostWeightView weights() const { return {bytes.data(), dtype, rows, cols}; }
  std::string name() const {
    return fmt::format("{} rows={} cols={} n_tokens={}", lab::name(dtype), rows, cols,
                       n_tokens);
  }
  std::vector<float> decoded() const {
    std::vector<float> w(std::size_t(rows * cols));
    cpu::reference::dequantize({w.data(), {rows * cols}}, dtype, bytes.data());
    return w;
  }
  Exact exact() const {
    const std::vector<float> w = decoded();
    Exact e;
    for (std::int64_t t = 0; t < n_tokens; ++t)
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = 0, magnitude = 0;
        for (std::int64_t c = 0; c < cols; ++c) {
          const double product =
              double(w[std::size_t(r * cols + c)]) * x[std::size_t(t * cols + c)];
          sum += product, magnitude += std::abs(product);
        }
        e.y.push_back(sum), e.magnitude.push_back(magnitude);
      }
    return e;
  }
};

/// What the layer gives for tokens [begin, end) of the problem.
std::vector<float> run(const gpu::Linear& layer, const Problem& p, std::int64_t begin,
                       std::int64_t end, int skew = 0) {
  const std::int64_t n = end - begin;
  const std::vector<float> some(p.x.begin() + begin * p.cols, p.x.begin() + end * p.cols);
  const DeviceArray<float> x(some, skew);
  const auto y = DeviceArray<float>::output(n * p.rows, skew);
  layer(y.view({n, p.rows}), x.view({n, p.cols}), stream());
  const std::vector<float> result = y.host();
  REQUIRE(y.intact());
  return result;
}

/// The largest error relative to the sum of |x * w|; NaN is the largest of all.
double worst_error(const std::vector<float>& y, const Exact& e) {
  REQUIRE(y.size() == e.y.size());
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(y[i] - e.y[i]);
    if (error == 0) continue;
    const double relative = error / e.magnitude[i];
    if (std::isnan(relative) || relative > worst) worst = relative;
    if (std::isnan(worst)) break;
  }
  return worst;
}

void check(const Problem& p, int skew = 0) {
  INFO(p.name());
  const gpu::Linear layer(p.weights(), stream());
  const double error = worst_error(run(layer, p, 0, p.n_tokens, skew), p.exact());
  if (!(error <= kRelative)) FAIL("the relative error is " << error);
}

template <class Function>
void each_dtype(Function&& f) {
  for (int i = 0; i < kDTypeCount; ++i) f(static_cast<DType>(i));
}
std::int64_t block_of(DType dtype) { return dtype_info(dtype).block_size; }

}  // namespace

LAB_PARITY(linear, "every format, odd rows and columns") {
  each_dtype([](DType dtype) {
    const std::int64_t block = block_of(dtype);
    for (const std::int64_t n : {1, 3, kTraced ? 5 : 40})
      for (const std::int64_t rows : {1, 7, 33}) {
        const std::int64_t cols = block == 1 ? n * 33 - 2 : block == 32 ? n * 32 : n * 256;
        if (rows * cols > 40000) continue;
        for (const std::int64_t t : {1, 2, 3}) check({dtype, rows, cols, t});
      }
  });
}

LAB_PARITY(linear, "any number of tokens") {
  each_dtype([](DType dtype) {
    for (const std::int64_t t : {1, 2, 3, 5, 7, 8, 9, 16, 17, 33, 65}) {
      if (kTraced && t != 2 && t != 7 && t != 17 && !(t == 65 && dtype == DType::q2_k))
        continue;
      check({dtype, 19, block_of(dtype) == 1 ? 70 : block_of(dtype), t});
    }
  });
}

LAB_PARITY(linear, "more columns than are staged at a time, more rows than one warp's") {
  check({DType::q4_0, 6, 8192 + 64, 1});
  if (kTraced) return;
  check({DType::q8_0, 6, 4096 + 32, 3});
  check({DType::f16, 5, 8192 + 9, 2});
  check({DType::q6_k, 4, 4096 + 512, 4});
  check({DType::q4_k, 2100, 256, 1});
  check({DType::f32, 4100, 9, 2});
}

LAB_PARITY(linear, "x and y off alignment") {
  for (const DType dtype : {DType::f32, DType::q4_0, DType::q6_k})
    for (const std::int64_t t : {1, 3, 20}) check({dtype, 5, 256, t}, 1);
}

LAB_PARITY(linear, "nothing to do") {
  check({DType::q8_0, 3, 32, 0});
  check({DType::q8_0, 0, 32, 2});
  const Problem none(DType::f32, 3, 0, 2);
  CHECK(run(gpu::Linear(none.weights(), stream()), none, 0, 2) == std::vector<float>(6));
  gpu::Linear empty;
  CHECK(empty.rows() == 0);
  CHECK(empty.bytes() == 0);
  const Problem p(DType::q4_k, 3, 256, 1);
  gpu::Linear moved(p.weights(), stream());
  empty = std::move(moved);
  CHECK(worst_error(run(empty, p, 0, 1), p.exact()) <= kRelative);
}

LAB_PARITY(linear, "NaN and infinity of one token, and of no other") {
  each_dtype([](DType dtype) {
    for (const std::int64_t t : {3, 20}) {
      const Problem p(dtype, 9, 256, t);
      const gpu::Linear layer(p.weights(), stream());
      const std::vector<float> clean = run(layer, p, 0, t), w = p.decoded();
      for (const float bad : {float(NAN), float(INFINITY), -float(INFINITY)}) {
        Problem spoilt = p;
        spoilt.x[std::size_t(2 * p.cols + 77)] = bad;
        const std::vector<float> y = run(layer, spoilt, 0, t);
        INFO(p.name() << " x=" << bad);
        for (std::int64_t r = 0; r < p.rows; ++r)
          if (w[std::size_t(r * p.cols + 77)] != 0)
            CHECK_FALSE(std::isfinite(y[std::size_t(2 * p.rows + r)]));
        CHECK(std::equal(y.begin(), y.begin() + 2 * p.rows, clean.begin()));
        CHECK(std::equal(y.begin() + 3 * p.rows, y.end(), clean.begin() + 3 * p.rows));
      }
    }
  });
}

LAB_PARITY(linear, "a NaN or infinite weight spoils its row and no other") {
  const float bad[] = {NAN, INFINITY};
  for (const float w : bad)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const std::int64_t t : {2, 20}) {
        const Problem p(dtype, 5, 64, t);
        Problem spoilt = p;
        std::byte* at = spoilt.bytes.data() + row_bytes(dtype, 3 * p.cols + 9);
        const Half half = to_half(w);
        const BFloat16 brain = to_bfloat16(w);
        dtype == DType::f32   ? std::memcpy(at, &w, 4)
        : dtype == DType::f16 ? std::memcpy(at, &half, 2)
                              : std::memcpy(at, &brain, 2);
        const auto clean = run(gpu::Linear(p.weights(), stream()), p, 0, t);
        const auto y = run(gpu::Linear(spoilt.weights(), stream()), spoilt, 0, t);
        INFO(p.name() << " w=" << w);
        for (std::size_t i = 0; i < y.size(); ++i)
          CHECK((i % 5 == 3 ? !std::isfinite(y[i]) : y[i] == clean[i]));
      }
}

LAB_PARITY(linear, "large, small and uneven activations") {
  each_dtype([](DType dtype) {
    for (const std::int64_t t : {2, 20})
      for (const float scale : {1e30f, 1e-30f}) {
        Problem p(dtype, 9, 256, t);
        for (std::size_t i = 0; i < p.x.size(); ++i)
          p.x[i] *= i % 256 < 3 ? scale : scale * 1e-3f;  // as outliers in a model are
        check(p);
      }
  });
}

LAB_PARITY(linear, "a token's result is the same bits in any company") {
  each_dtype([](DType dtype) {
    if (kTraced && dtype != DType::f32 && dtype != DType::q5_k) return;
    const Problem p(dtype, 20, 512, 70, 5);
    const gpu::Linear layer(p.weights(), stream());
    INFO(p.name());
    const auto same = [&](std::int64_t begin, std::int64_t end,
                          const std::vector<float>& all) {
      const std::vector<float> some = run(layer, p, begin, end);
      return std::equal(some.begin(), some.end(), all.begin() + begin * p.rows);
    };
    const std::vector<float> few = run(layer, p, 0, 8), many = run(layer, p, 0, 70);
    for (const std::int64_t n : {1, 2, 3, 4, 7}) CHECK(same(8 - n, 8, few));
    for (const std::int64_t n : {9, 33}) CHECK(same(70 - n, 70, many));
  });
}

LAB_PARITY(linear, "errors are the CPU's") {
  const Problem p(DType::q8_0, 3, 64, 2);
  const gpu::Linear layer(p.weights(), stream());
  const auto y = DeviceArray<float>::output(6);
  const DeviceArray<float> x(p.x);
  CHECK(message_of([&] {
          layer(y.view({2, 3}), x.view({2, 32}), stream());
        }) == "linear: weights are (out=3, in=64) but x is (n_tokens=2, in=32)");
  CHECK(message_of([&] { layer(y.view({1, 3}), x.view({2, 64}), stream()); }) != "");
  CHECK(message_of([&] {
          gpu::Linear({p.bytes.data(), DType::q8_0, 3, 33}, stream());
        }) == "linear: weights are (out=3, in=33) but Q8_0 stores rows in blocks of 32");
}

LAB_PARITY(embedding, "every format, to the bit") {
  each_dtype([](DType dtype) {
    const std::int64_t block = block_of(dtype);
    for (const std::int64_t cols : {block == 1 ? std::int64_t{33} : block, 6 * block})
      for (const int skew : {0, 1}) {
        const Problem p(dtype, 9, cols, 1);
        const std::vector<std::int32_t> ids = {8, 0, 3, 3, 7};
        INFO(p.name() << " skew=" << skew);
        const std::vector<float> w = p.decoded();
        std::vector<float> expected;
        for (const std::int32_t id : ids)
          expected.insert(expected.end(), w.begin() + id * cols,
                          w.begin() + (id + 1) * cols);
        const gpu::Linear table(p.weights(), stream());
        const DeviceArray<std::int32_t> device_ids(ids);
        const auto out = DeviceArray<float>::output(5 * cols, skew);
        gpu::embedding(out.view({5, cols}), device_ids.view({5}), table, stream());
        LAB_REQUIRE_CLOSE(out, expected, 0, 0);
      }
  });
}

LAB_PARITY(embedding, "an id that is no row gives NaN, and errors are the CPU's") {
  const Problem p(DType::q8_0, 9, 32, 1);
  const gpu::Linear table(p.weights(), stream());
  const DeviceArray<std::int32_t> ids(std::vector<std::int32_t>{9, -1, 8});
  const auto out = DeviceArray<float>::output(3 * 32);
  gpu::embedding(out.view({3, 32}), ids.view({3}), table, stream());
  const std::vector<float> y = out.host();
  for (int i = 0; i < 64; ++i) CHECK(std::isnan(y[std::size_t(i)]));
  for (int i = 64; i < 96; ++i) CHECK(std::isfinite(y[std::size_t(i)]));
  gpu::embedding(out.view({0, 32}), ids.view({0}), table, stream());
  CHECK(message_of([&] {
          gpu::embedding(out.view({2, 32}), ids.view({3}), table, stream());
        }) == "embedding: ids has n_tokens=3 but out is (n_tokens=2, model_dim=32)");
}

LAB_PARITY(dequantize, "every format, to the bit, at any alignment") {
  each_dtype([](DType dtype) {
    for (const std::int64_t n_blocks : {1, 3, 9})
      for (const int skew : {0, 1}) {
        const Problem p(dtype, 1, n_blocks * block_of(dtype), 1, 9);
        INFO(p.name() << " skew=" << skew);
        const DeviceArray<std::byte> blocks(p.bytes, skew);
        const auto out = DeviceArray<float>::output(p.cols, skew);
        gpu::dequantize(out.view({p.cols}), dtype, blocks.data(), stream());
        LAB_REQUIRE_CLOSE(out, p.decoded(), 0, 0);
      }
  });
}

LAB_PARITY(dequantize, "whole blocks only") {
  const DeviceArray<std::byte> blocks(std::vector<std::byte>(68));
  const auto out = DeviceArray<float>::output(33);
  gpu::dequantize(out.view({0}), DType::q8_0, blocks.data(), stream());
  CHECK(message_of([&] {
          gpu::dequantize(out.view({33}), DType::q8_0, blocks.data(), stream());
        }) ==
        "dequantize: out has 33 elements but Q8_0 stores blocks of 32; give whole blocks");
}
