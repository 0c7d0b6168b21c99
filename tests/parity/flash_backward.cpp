#include "kernels/flash_problem.hpp"
#include "lab/kernels/flash_attention.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

using Gradients = std::array<std::vector<float>, 3>;  // dq, dk, dv

Gradients expected(const FlashProblem<float>& p, const std::vector<float>& dout) {
  Gradients g = {p.q, p.k, p.v};
  cpu::reference::flash_attention_backward(
      {g[0].data(), {p.T, p.H, p.Dh}}, {g[1].data(), {p.S, p.K, p.Dh}},
      {g[2].data(), {p.S, p.K, p.Dh}}, view_of(dout, {p.T, p.H, p.Dh}), p.queries(),
      p.keys(), p.values(), p.batch(), p.scale, p.mask);
  return g;
}

Gradients result(const FlashProblem<float>& p, const std::vector<float>& dout_values) {
  const auto [out_values, lse_values] = p.expected();
  const DeviceArray<float> q(p.q), k(p.k), v(p.v), dout(dout_values), out(out_values),
      lse(lse_values);
  const DeviceArray<std::int32_t> query_starts(p.query_starts), key_starts(p.key_starts);
  const auto like = [](const std::vector<float>& x) {
    return DeviceArray<float>::output(std::vector<float>(x.size(), 12345));
  };
  const auto dq = like(p.q), dk = like(p.k), dv = like(p.v);
  const std::int64_t n = p.n_sequences() + 1;
  const std::int64_t rows[3] = {p.T, p.H, p.Dh}, keys[3] = {p.S, p.K, p.Dh};
  gpu::flash_attention_backward(
      dq.view(rows), dk.view(keys), dv.view(keys), dout.view(rows), q.view(rows),
      k.view(keys), v.view(keys), out.view(rows), lse.view({p.T, p.H}),
      {query_starts.view({n}), key_starts.view({n}), p.max_queries, p.max_keys}, p.scale,
      p.mask, stream());
  REQUIRE(dq.intact());
  REQUIRE(dk.intact());
  REQUIRE(dv.intact());
  return {dq.host(), dk.host(), dv.host()};
}

void check(const FlashProblem<float>& p) {
  INFO(p.name());
  Rng rng(5);
  const std::vector<float> dout = random_floats(rng, std::ssize(p.q));
  const Gradients right = expected(p, dout), got = result(p, dout);
  for (std::size_t i = 0; i < 3; ++i)
    REQUIRE(lab::test::mismatch(got[i], right[i], 2e-5, 1e-4) == "");
  REQUIRE(result(p, dout) == got);  // every sum has one order
}

}  // namespace

LAB_PARITY(flash_attention, "backward: ragged batches, groups, every size of head") {
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
    for (const std::int64_t Dh : {1, 20, 32, 64, 100, 128}) {
      check(FlashProblem<float>({{5, 7}, {0, 3}, {1, 1}, {17, 33}, {9, 2}, {4, 0}}, 4, 2,
                                Dh, mask));
      if (kTraced) continue;
      check(FlashProblem<float>({{40, 70}, {33, 33}}, 3, 1, Dh, mask));
    }
}

LAB_PARITY(flash_attention, "backward: says what it cannot do") {
  const FlashProblem<float> p({{1, 1}}, 1, 1, 136, AttentionMask::none);
  CHECK(message_of([&] { result(p, p.q); }) ==
        "flash_attention_backward: head_dim is 136, but on a GPU it must be at most 128; "
        "use the CPU");
}
