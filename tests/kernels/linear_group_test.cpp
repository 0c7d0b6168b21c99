#include "kernels/linear_support.hpp"
#include "lab/kernels/silu_mul.hpp"

using namespace lab;
using namespace lab::test;

namespace {

struct Matrix {
  std::vector<std::byte> bytes;
  cpu::Linear layer;

  Matrix(DType dtype, std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
    Rng rng(seed);
    bytes = random_weights(rng, dtype, rows, cols);
    layer = cpu::Linear({bytes.data(), dtype, rows, cols});
  }
};

std::vector<float> apply(const cpu::Linear& layer, HostView<const float, 2> x,
                         Activations activations) {
  std::vector<float> y(std::size_t(x.shape[0] * layer.rows()));
  layer({y.data(), {x.shape[0], layer.rows()}}, x, activations);
  return y;
}

void check_same_bits(Guarded<float>& y, const std::vector<float>& expected) {
  REQUIRE(y.size() == std::int64_t(expected.size()));
  REQUIRE((expected.empty() ||
           std::memcmp(y.data(), expected.data(), expected.size() * sizeof(float)) == 0));
  REQUIRE(y.intact());
}

}  // namespace

TEST_CASE("a group of linear layers gives the bits of one call for each") {
  const Matrix q4(DType::q4_k, 70, 512, 1), q6(DType::q6_k, 17, 512, 2),
      none(DType::q4_k, 0, 512, 3), f32(DType::f32, 33, 512, 4),
      q8(DType::q8_0, 100, 512, 5), again(DType::q4_k, 16, 512, 6);
  Rng rng(9);
  const std::vector<float> x = random_floats(rng, 530 * 512);
  each_instruction_set([&] {
    for (const Activations activations : {Activations::f32, Activations::int8})
      for (const int threads : {1, 3})
        for (const std::int64_t n_tokens : {1, 4, 5, 33, 530}) {
          if (n_tokens == 530 && std::string(cpu::instruction_set()) == "plain") continue;
          INFO("int8 " << int(activations) << ", threads " << threads << ", n_tokens "
                       << n_tokens);
          const auto input = view_of(x, {n_tokens, 512});
          std::vector<const Matrix*> matrices = {&q4, &q6, &none, &f32, &q8, &again};
          std::vector<Guarded<float>> y;
          std::vector<cpu::Projection> outputs;
          for (const Matrix* m : matrices) y.emplace_back(n_tokens * m->layer.rows());
          for (std::size_t i = 0; i < y.size(); ++i)
            outputs.push_back(
                {&matrices[i]->layer, y[i].view({n_tokens, matrices[i]->layer.rows()})});
          set_n_threads(threads);
          cpu::linear_group(outputs, input, activations);
          set_n_threads(1);
          for (std::size_t i = 0; i < y.size(); ++i)
            check_same_bits(y[i], apply(matrices[i]->layer, input, activations));
        }
  });
}

TEST_CASE("swiglu gives the bits of two linear layers and silu_mul") {
  const DType gate_dtype = any_dtype();
  const std::int64_t rows = 170, cols = 768;
  const Matrix gate(gate_dtype, rows, cols, 1);
  const Matrix up(GENERATE(0, 1) ? gate_dtype : DType::q8_0, rows, cols, 2);
  Rng rng(9);
  const std::vector<float> x = random_floats(rng, 530 * cols);
  each_instruction_set([&] {
    for (const Activations activations : {Activations::f32, Activations::int8})
      for (const std::int64_t n_tokens : {1, 3, 4, 5, 40, 530}) {
        if (n_tokens > 4 && std::string(cpu::instruction_set()) == "plain" &&
            (n_tokens > 5 || gate_dtype != DType::q4_0))
          continue;
        if (n_tokens == 530 && gate_dtype != DType::q4_0) continue;
        INFO(name(gate_dtype) << ", int8 " << int(activations) << ", n_tokens "
                              << n_tokens);
        const auto input = view_of(x, {n_tokens, cols});
        std::vector<float> expected = apply(gate.layer, input, activations);
        const std::vector<float> ups = apply(up.layer, input, activations);
        const HostView<float, 2> products{expected.data(), {n_tokens, rows}};
        cpu::silu_mul(products, products, {ups.data(), {n_tokens, rows}});
        Guarded<float> y(n_tokens * rows);
        set_n_threads(2);
        cpu::swiglu(y.view({n_tokens, rows}), gate.layer, up.layer, input, activations);
        set_n_threads(1);
        check_same_bits(y, expected);
      }
  });
}

TEST_CASE("groups of nothing, and of no tokens, are legal") {
  const Matrix m(DType::q8_0, 20, 64, 1);
  const std::vector<float> x(128);
  cpu::linear_group({}, view_of(x, {2, 64}));
  Guarded<float> nothing(0);
  const cpu::Projection output{&m.layer, nothing.view({0, 20})};
  cpu::linear_group({&output, 1}, view_of(x, {0, 64}), Activations::int8);
  cpu::swiglu(nothing.view({0, 20}), m.layer, m.layer, view_of(x, {0, 64}));
  const Matrix no_rows(DType::q8_0, 0, 64, 1);
  cpu::swiglu(nothing.view({2, 0}), no_rows.layer, no_rows.layer, view_of(x, {2, 64}));
  CHECK(nothing.intact());

  // Without columns a K format still has a unit of 256, the others one of 32.
  const Matrix a(DType::q8_0, 20, 0, 1), b(DType::q4_k, 20, 0, 1);
  each_instruction_set([&] {
    for (const std::int64_t n : {2, 9}) {
      Guarded<float> y(n * 20), z(n * 20);
      const cpu::Projection both[] = {{&a.layer, y.view({n, 20})},
                                      {&b.layer, z.view({n, 20})}};
      for (const Activations activations : {Activations::f32, Activations::int8}) {
        cpu::linear_group(both, view_of(x, {n, 0}), activations);
        for (std::int64_t i = 0; i < y.size(); ++i) REQUIRE((y[i] == 0 && z[i] == 0));
      }
    }
  });
}

TEST_CASE("groups say which shapes disagree") {
  const Matrix m(DType::q8_0, 20, 64, 1), other(DType::q8_0, 21, 64, 1);
  std::vector<float> x(128), y(64);
  const auto input = view_of(x, {2, 64});
  const cpu::Projection outputs[] = {{&m.layer, {y.data(), {2, 20}}},
                                     {&other.layer, {y.data(), {2, 20}}}};
  CHECK(message_of([&] { cpu::linear_group(outputs, input); }) ==
        "linear: weights are (out=21, in=64) but y is (n_tokens=2, out=20)");
  CHECK(message_of([&] {
          cpu::swiglu({y.data(), {2, 20}}, m.layer, other.layer, input);
        }) == "linear: weights are (out=21, in=64) but y is (n_tokens=2, out=20)");
  CHECK(message_of([&] {
          cpu::swiglu({y.data(), {2, 21}}, m.layer, other.layer, input);
        }) == "linear: weights are (out=20, in=64) but y is (n_tokens=2, out=21)");
}
