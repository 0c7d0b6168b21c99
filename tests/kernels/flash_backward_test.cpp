#include "kernels/flash_problem.hpp"
#include "lab/kernels/flash_attention.hpp"

using namespace lab;
using namespace lab::test;

namespace {

struct Gradients {
  std::vector<float> dq, dk, dv;
  bool operator==(const Gradients&) const = default;
};

Gradients backward(const FlashProblem<float>& p, const std::vector<float>& dout) {
  std::vector<float> out(p.q.size()), lse(std::size_t(p.T * p.H));
  cpu::flash_attention<float>({out.data(), {p.T, p.H, p.Dh}}, {lse.data(), {p.T, p.H}},
                              p.queries(), p.keys(), p.values(), p.batch(), p.scale,
                              p.mask);
  Guarded<float> dq(p.T * p.H * p.Dh), dk(p.S * p.K * p.Dh), dv(dk.size());
  cpu::flash_attention_backward(
      dq.view({p.T, p.H, p.Dh}), dk.view({p.S, p.K, p.Dh}), dv.view({p.S, p.K, p.Dh}),
      view_of(dout, {p.T, p.H, p.Dh}), p.queries(), p.keys(), p.values(),
      view_of(out, {p.T, p.H, p.Dh}), view_of(lse, {p.T, p.H}), p.batch(), p.scale, p.mask);
  REQUIRE(dq.intact());
  REQUIRE(dk.intact());
  REQUIRE(dv.intact());
  return {{dq.data(), dq.data() + dq.size()},
          {dk.data(), dk.data() + dk.size()},
          {dv.data(), dv.data() + dv.size()}};
}

Gradients definition(const FlashProblem<float>& p, const std::vector<float>& dout) {
  Gradients g{std::vector<float>(p.q.size()), std::vector<float>(p.k.size()),
              std::vector<float>(p.v.size())};
  cpu::reference::flash_attention_backward(
      {g.dq.data(), {p.T, p.H, p.Dh}}, {g.dk.data(), {p.S, p.K, p.Dh}},
      {g.dv.data(), {p.S, p.K, p.Dh}}, view_of(dout, {p.T, p.H, p.Dh}), p.queries(),
      p.keys(), p.values(), p.batch(), p.scale, p.mask);
  return g;
}

std::vector<float> upstream(const FlashProblem<float>& p) {
  Rng rng(5);
  return random_floats(rng, std::ssize(p.q));
}

void require_close(const Gradients& a, const Gradients& b, double absolute) {
  REQUIRE(mismatch(a.dq.data(), b.dq.data(), std::ssize(a.dq), absolute, 1e-4) == "");
  REQUIRE(mismatch(a.dk.data(), b.dk.data(), std::ssize(a.dk), absolute, 1e-4) == "");
  REQUIRE(mismatch(a.dv.data(), b.dv.data(), std::ssize(a.dv), absolute, 1e-4) == "");
}

/// sum(dout * attention) in f64, of operands in f64.
double loss(const FlashProblem<float>& p, const std::vector<double>& q,
            const std::vector<double>& k, const std::vector<double>& v,
            const std::vector<float>& dout) {
  double total = 0;
  for (std::size_t b = 0; b + 1 < p.query_starts.size(); ++b) {
    const std::int64_t T = p.query_starts[b + 1] - p.query_starts[b],
                       S = p.key_starts[b + 1] - p.key_starts[b];
    for (std::int64_t t = 0; t < T; ++t)
      for (std::int64_t h = 0; h < p.H; ++h) {
        const std::int64_t row = ((p.query_starts[b] + t) * p.H + h) * p.Dh;
        double sum = 0, mixed = 0;
        for (std::int64_t s = 0; s < S; ++s) {
          if (p.mask == AttentionMask::causal && s > S - T + t) break;
          const std::int64_t key = ((p.key_starts[b] + s) * p.K + h * p.K / p.H) * p.Dh;
          double score = 0, value = 0;
          for (std::int64_t d = 0; d < p.Dh; ++d) {
            score += q[std::size_t(row + d)] * k[std::size_t(key + d)];
            value += double(dout[std::size_t(row + d)]) * v[std::size_t(key + d)];
          }
          const double weight = std::exp(score * double(p.scale));
          sum += weight;
          mixed += weight * value;
        }
        if (sum > 0) total += mixed / sum;
      }
  }
  return total;
}

}  // namespace

TEST_CASE("flash attention backward: as from stored weights, ragged and grouped") {
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
    for (const std::int64_t Dh : {1, 20, 32, 64, 128}) {
      const FlashProblem<float> p({{5, 7}, {0, 3}, {1, 65}, {70, 129}, {33, 33}, {4, 0}}, 4,
                                  2, Dh, mask);
      INFO(p.name());
      require_close(backward(p, upstream(p)), definition(p, upstream(p)), 2e-5);
    }
    const FlashProblem<float> one({{1, 1}, {9, 1}, {6, 2}}, 3, 1, 32, mask);
    require_close(backward(one, upstream(one)), definition(one, upstream(one)), 1e-5);
  }
}

TEST_CASE("flash attention backward: finite differences in f64 agree to 1e-4") {
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
    const FlashProblem<float> p({{4, 6}, {3, 3}, {3, 1}}, 4, 2, 8, mask);
    const std::vector<float> dout = upstream(p);
    const Gradients g = backward(p, dout);
    std::vector<double> operand[3] = {
        {p.q.begin(), p.q.end()}, {p.k.begin(), p.k.end()}, {p.v.begin(), p.v.end()}};
    const std::vector<float>* gradient[3] = {&g.dq, &g.dk, &g.dv};
    for (int which = 0; which < 3; ++which) {
      double error = 0, norm = 0;
      for (std::size_t i = 0; i < operand[which].size(); ++i) {
        constexpr double kStep = 1e-5;
        double& x = operand[which][i];
        const double before = x;
        x = before + kStep;
        const double up = loss(p, operand[0], operand[1], operand[2], dout);
        x = before - kStep;
        const double down = loss(p, operand[0], operand[1], operand[2], dout);
        x = before;
        const double slope = (up - down) / (2 * kStep), got = double((*gradient[which])[i]);
        error += (slope - got) * (slope - got);
        norm += slope * slope;
      }
      CAPTURE(which, std::sqrt(error / norm));
      REQUIRE(std::sqrt(error / norm) < 1e-4);
    }
  }
}

TEST_CASE("flash attention backward: large scores do not overflow") {
  FlashProblem<float> p({{20, 90}}, 2, 1, 32, AttentionMask::causal, 1e4f);
  const Gradients g = backward(p, upstream(p));
  for (const std::vector<float>* x : {&g.dq, &g.dk, &g.dv})
    for (const float y : *x) REQUIRE(std::isfinite(y));
}

TEST_CASE("flash attention backward: any number of threads gives the same bits") {
  const FlashProblem<float> p({{40, 90}, {7, 7}, {65, 130}}, 6, 3, 24,
                              AttentionMask::causal);
  set_n_threads(1);
  const Gradients one = backward(p, upstream(p));
  for (const int threads : {2, 3, 5}) {
    set_n_threads(threads);
    REQUIRE(backward(p, upstream(p)) == one);
  }
  set_n_threads(1);
}

TEST_CASE("flash attention backward: derivatives have the shapes of their operands") {
  std::vector<float> x(1024);
  const std::vector<std::int32_t> starts{0, 2};
  const auto q = view_of(x, {2, 2, 8}), k = view_of(x, {2, 1, 8});
  CHECK(
      message_of([&] {
        cpu::flash_attention_backward(
            {x.data(), {2, 2, 8}}, {x.data(), {2, 2, 8}}, {x.data(), {2, 1, 8}}, q, q, k, k,
            q, view_of(x, {2, 2}), {{starts.data(), {2}}, {starts.data(), {2}}, 2}, 1,
            AttentionMask::none);
      }) ==
      "flash_attention_backward: dq is (T=2, H=2, Dh=8), dk is (S=2, K=2, Dh=8) and dv is "
      "(S=2, K=1, Dh=8); give each the shape of q, k and v");
}
