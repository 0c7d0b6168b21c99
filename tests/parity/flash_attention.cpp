#include "lab/kernels/flash_attention.hpp"

#include "kernels/flash_problem.hpp"
#include "parity/harness.hpp"
#ifdef LAB_TEST_TRACED
#include "simt/emulator.hpp"
#endif

using namespace lab;
using namespace lab::test;

namespace {

constexpr AttentionMask kMasks[] = {AttentionMask::none, AttentionMask::causal};

template <class KV>
std::pair<std::vector<float>, std::vector<float>> result(const FlashProblem<KV>& p) {
  const DeviceArray<float> q(p.q);
  const DeviceArray<KV> k(p.k), v(p.v);
  const DeviceArray<std::int32_t> query_starts(p.query_starts), key_starts(p.key_starts);
  const auto out = DeviceArray<float>::output(std::vector<float>(p.q.size(), 12345));
  const auto lse =
      DeviceArray<float>::output(std::vector<float>(std::size_t(p.T * p.H), 12345));
  const std::int64_t n = p.n_sequences() + 1;
  gpu::flash_attention<KV>(
      out.view({p.T, p.H, p.Dh}), lse.view({p.T, p.H}), q.view({p.T, p.H, p.Dh}),
      k.view({p.S, p.K, p.Dh}), v.view({p.S, p.K, p.Dh}),
      {query_starts.view({n}), key_starts.view({n}), p.max_queries, p.max_keys}, p.scale,
      p.mask, stream());
  REQUIRE(out.intact());
  REQUIRE(lse.intact());
  return {out.host(), lse.host()};
}

/// Weights are rounded to 11 bits for f16 and to 8 for bf16 on tensor cores, which the mean
/// of values of size 1 shows; lse comes from scores that are not rounded.
template <class KV>
double tolerance(std::int64_t Dh) {
  const bool rounded = Dh == 32 || Dh == 64 || Dh == 128;
  if (std::is_same_v<KV, float> || !rounded) return 1e-5;
  return std::is_same_v<KV, Half> ? 1.5e-3 : 1.2e-2;
}

template <class KV>
void check(const FlashProblem<KV>& p) {
  INFO(p.name());
  const auto [out, lse] = p.expected();
  const auto [gpu_out, gpu_lse] = result(p);
  REQUIRE(lab::test::mismatch(gpu_out, out, tolerance<KV>(p.Dh), 1e-4) == "");
  REQUIRE(lab::test::mismatch(gpu_lse, lse, 2e-5, 1e-5) == "");
}

}  // namespace

LAB_PARITY(flash_attention, "tensor cores: ragged batches, groups, every size of head") {
  for (const AttentionMask mask : kMasks)
    for (const std::int64_t Dh : {32, 64, 128}) {
      const std::vector<FlashSequence> ragged = {
          {5, 7}, {0, 3}, {1, 1}, {33, 70}, {17, 17}};
      check(FlashProblem<Half>(ragged, 4, 2, Dh, mask));
      check(FlashProblem<BFloat16>(ragged, 3, 1, Dh, mask));
      if (kTraced) continue;
      check(FlashProblem<Half>({{130, 257}, {64, 64}, {65, 128}}, 2, 2, Dh, mask));
      check(FlashProblem<BFloat16>({{100, 100}}, 6, 2, Dh, mask));
    }
}

LAB_PARITY(flash_attention, "CUDA cores: f32 and other sizes of head") {
  for (const AttentionMask mask : kMasks) {
    const std::vector<FlashSequence> ragged = {{5, 7}, {0, 3}, {1, 1}, {33, 70}, {17, 17}};
    for (const std::int64_t Dh : {8, 64, 80, 128, 136, 256})
      check(FlashProblem<float>(ragged, 2, 1, Dh, mask));
    check(FlashProblem<Half>(ragged, 3, 1, 40, mask));
    check(FlashProblem<BFloat16>(ragged, 2, 2, 96, mask));
  }
}

LAB_PARITY(flash_attention, "few queries: keys are split, and the parts merged") {
  for (const AttentionMask mask : kMasks) {
    const std::vector<FlashSequence> few = {{1, 513}, {4, 600}, {2, 2}, {0, 9}, {3, 1025}};
    check(FlashProblem<Half>(few, 4, 1, 64, mask));
    if (kTraced) continue;
    check(FlashProblem<BFloat16>(few, 2, 2, 32, mask));
    check(FlashProblem<float>(few, 3, 1, 40, mask));
  }
}

LAB_PARITY(flash_attention, "queries that see no key are zero") {
  for (const AttentionMask mask : kMasks) {
    check(FlashProblem<Half>({{70, 3}, {5, 0}, {6, 6}}, 2, 1, 64, mask));
    check(FlashProblem<float>({{70, 3}, {5, 0}, {6, 6}}, 2, 1, 64, mask));
    check(FlashProblem<Half>({{4, 2}, {1, 0}, {1, 700}}, 2, 1, 32, mask));
  }
}

LAB_PARITY(flash_attention, "scores of 1e4 do not overflow, and the largest takes all") {
  const auto run = [&]<class KV>(KV, std::int32_t queries, std::int32_t keys) {
    FlashProblem<KV> p({{queries, keys}}, 2, 1, 32, AttentionMask::causal);
    for (std::size_t i = 0; i < p.q.size(); ++i) p.q[i] = i % 32 == 0 ? 8192.0f : 0.0f;
    for (std::size_t s = 0; s < std::size_t(keys); ++s)
      p.k[s * 32] = from_float<KV>(s == 7 ? 1.0f : s % 2 ? -1.0f : 0.5f);
    p.scale = 2;
    const auto [out, lse] = result(p);
    for (std::size_t i = 0; i < out.size(); ++i)
      REQUIRE(out[i] == to_float(p.v[7 * 32 + i % 32]));
    for (const float l : lse) REQUIRE(std::abs(l - 16384) < 0.01f);
  };
  for (const std::int32_t queries : {1, 40}) {
    run(Half{}, queries, 100);
    run(BFloat16{}, queries, 100);
    run(float{}, queries, 600);
  }
}

LAB_PARITY(flash_attention, "says what it cannot do") {
  CHECK(message_of([&] {
          result(FlashProblem<float>({{1, 4}}, 2, 1, 20, AttentionMask::none));
        }) ==
        "flash_attention: head_dim is 20, but on a GPU it must be a multiple of 8, at most "
        "256; run this model with --device cpu");
}

#ifdef LAB_TEST_TRACED
LAB_PARITY(flash_attention, "swizzled tiles: ldmatrix meets no bank conflict") {
  for (const std::int64_t Dh : {32, 64, 128}) {
    CAPTURE(Dh);
    const FlashProblem<Half> p({{64, 128}}, 1, 1, Dh, AttentionMask::none);
    emulator::reset_counters();
    result(p);
    const emulator::Traffic load = emulator::counters().shared_load;
    // Four warps read their queries once, every key and every value: 8 x 8 elements are a
    // wavefront, four of them a request.
    const std::uint64_t matrices = std::uint64_t(4 * (2 * (Dh / 8) + 2 * 16 * (Dh / 8)));
    REQUIRE(load.requests == matrices / 4);
    REQUIRE(load.units == matrices);
  }
}
#endif
