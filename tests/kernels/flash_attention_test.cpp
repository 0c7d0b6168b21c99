#include "lab/kernels/flash_attention.hpp"

#include "kernels/flash_problem.hpp"
#include "lab/kernels/attention.hpp"

using namespace lab;
using namespace lab::test;

namespace {

constexpr AttentionMask kMasks[] = {AttentionMask::none, AttentionMask::causal};

template <class KV>
std::pair<std::vector<float>, std::vector<float>> run(const FlashProblem<KV>& p) {
  Guarded<float> out(p.T * p.H * p.Dh), lse(p.T * p.H);
  cpu::flash_attention<KV>(out.view({p.T, p.H, p.Dh}), lse.view({p.T, p.H}), p.queries(),
                           p.keys(), p.values(), p.batch(), p.scale, p.mask);
  REQUIRE(out.intact());
  REQUIRE(lse.intact());
  return {{out.data(), out.data() + out.size()}, {lse.data(), lse.data() + lse.size()}};
}

std::string difference(const std::vector<float>& a, const std::vector<float>& b,
                       double absolute, double relative) {
  REQUIRE(a.size() == b.size());
  return mismatch(a.data(), b.data(), std::ssize(a), absolute, relative);
}

template <class KV>
void check(const FlashProblem<KV>& p, double absolute = 1e-5) {
  INFO(p.name());
  const auto expected = p.expected();
  each_instruction_set([&] {
    const auto fast = run(p);
    REQUIRE(difference(fast.first, expected.first, absolute, 1e-4) == "");
    REQUIRE(difference(fast.second, expected.second, absolute, 1e-5) == "");
  });
}

}  // namespace

TEST_CASE("flash attention: every storage type, head size, group and raggedness") {
  for (const AttentionMask mask : kMasks) {
    const std::vector<FlashSequence> ragged = {
        {5, 7}, {0, 3}, {1, 300}, {40, 129}, {33, 33}};
    for (const std::int64_t Dh : {32, 64, 128, 1, 20, 80}) {
      check(FlashProblem<float>(ragged, 4, 2, Dh, mask));
      check(FlashProblem<Half>(ragged, 3, 1, Dh, mask));
      check(FlashProblem<BFloat16>(ragged, 2, 2, Dh, mask));
    }
    check(FlashProblem<float>({{1, 1}}, 1, 1, 64, mask));
    check(FlashProblem<float>({{130, 257}}, 6, 2, 64, mask, 30), 3e-4);
    check(FlashProblem<float>({}, 2, 1, 32, mask));
  }
}

TEST_CASE("flash attention: queries that see no key are zero, with lse minus infinity") {
  const FlashProblem<float> p({{6, 2}, {3, 0}, {2, 2}}, 2, 1, 32, AttentionMask::causal);
  check(p);
  const auto [out, lse] = run(p);
  for (std::int64_t t = 0; t < p.T; ++t)
    for (std::int64_t h = 0; h < 2; ++h) {
      const bool blind = t < 4 || (t >= 6 && t < 9);
      REQUIRE((lse[std::size_t(t * 2 + h)] == -INFINITY) == blind);
      for (std::size_t d = 0; d < 32; ++d)
        REQUIRE((out[std::size_t(t * 2 + h) * 32 + d] == 0) == blind);
    }
  check(FlashProblem<float>({{3, 0}, {2, 2}}, 2, 1, 32, AttentionMask::none));
}

TEST_CASE("flash attention: a causal sequence has the bits of attention, on any threads") {
  const FlashProblem<Half> p({{150, 300}}, 6, 2, 40, AttentionMask::causal);
  Guarded<float> out(p.T * p.H * p.Dh);
  cpu::attention<Half>(out.view({p.T, p.H, p.Dh}), p.queries(), p.keys(), p.values(),
                       p.scale);
  for (const AttentionMask mask : kMasks) {
    FlashProblem<Half> one = p;
    one.mask = mask;
    set_n_threads(1);
    const auto alone = run(one);
    if (mask == AttentionMask::causal)
      REQUIRE(std::memcmp(alone.first.data(), out.data(), alone.first.size() * 4) == 0);
    for (const int threads : {2, 3}) {
      set_n_threads(threads);
      REQUIRE(run(one) == alone);
    }
    set_n_threads(1);
  }
}

TEST_CASE("flash attention: scores of 1e4 and more stay finite") {
  for (const AttentionMask mask : kMasks) {
    FlashProblem<float> p({{3, 200}}, 2, 1, 32, mask);
    for (std::size_t i = 0; i < p.q.size(); ++i) p.q[i] = i % 32 == 0 ? 1e4f : 0;
    for (std::size_t s = 0; s < 200; ++s) p.k[s * 32] = s == 150 ? 3.0f : s % 2 ? -1 : 1;
    p.scale = 1;
    const auto [out, lse] = run(p);
    for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == p.v[150 * 32 + i % 32]);
    for (const float l : lse) REQUIRE(l == 3e4f);
  }
}

TEST_CASE("naive attention is the same function and says what it stores") {
  for (const AttentionMask mask : kMasks)
    for (const std::int64_t Dh : {20, 64}) {
      const FlashProblem<float> p({{5, 7}, {300, 301}, {0, 3}, {6, 2}, {2, 0}, {513, 513}},
                                  4, 2, Dh, mask);
      INFO(p.name());
      const auto expected = p.expected().first;
      each_instruction_set([&] {
        Guarded<float> out(p.T * p.H * p.Dh);
        REQUIRE(cpu::naive_attention(out.view({p.T, p.H, p.Dh}), p.queries(), p.keys(),
                                     p.values(), p.batch(), p.scale,
                                     p.mask) == 4 * 513 * 513);
        REQUIRE(mismatch(out.data(), expected.data(), out.size(), 1e-5, 1e-4) == "");
        REQUIRE(out.intact());
      });
    }
}

TEST_CASE("merged attention over any split of the keys is attention over all of them") {
  const FlashProblem<float> p({{7, 300}}, 4, 2, 24, AttentionMask::none);
  const auto [out, lse] = p.expected();
  for (const std::int64_t splits : {1, 2, 3, 7, 64, 300})
    for (const bool backwards : {false, true}) {
      CAPTURE(splits, backwards);
      std::vector<float> sum(out.size(), NAN), sum_lse(lse.size(), -INFINITY);
      for (std::int64_t i = 0; i < splits; ++i) {
        const std::int64_t part = backwards ? splits - 1 - i : i;
        const std::int64_t first = part * 300 / splits, end = (part + 1) * 300 / splits;
        FlashProblem<float> one({{7, std::int32_t(end - first)}}, 4, 2, 24, p.mask);
        one.q = p.q;
        one.k.assign(p.k.begin() + first * 48, p.k.begin() + end * 48);
        one.v.assign(p.v.begin() + first * 48, p.v.begin() + end * 48);
        const auto [part_out, part_lse] = run(one);
        cpu::merge_attention_states({sum.data(), {7, 4, 24}}, {sum_lse.data(), {7, 4}},
                                    view_of(part_out, {7, 4, 24}),
                                    view_of(part_lse, {7, 4}));
      }
      REQUIRE(difference(sum, out, 2e-6, 1e-5) == "");
      REQUIRE(difference(sum_lse, lse, 2e-6, 1e-6) == "");
    }
}

TEST_CASE("merging empty parts changes nothing and is never NaN") {
  std::vector<float> a{1, 2}, lse_a{5}, b{NAN, NAN}, lse_b{-INFINITY};
  const auto merge = [&] {
    cpu::merge_attention_states({a.data(), {1, 1, 2}}, {lse_a.data(), {1, 1}},
                                view_of(b, {1, 1, 2}), view_of(lse_b, {1, 1}));
  };
  merge();
  CHECK(a == std::vector<float>{1, 2});
  CHECK(lse_a[0] == 5);
  a = {0, 0}, lse_a = {-INFINITY}, b = {0, 0};
  merge();
  CHECK(a == std::vector<float>{0, 0});
  CHECK(lse_a[0] == -INFINITY);
  b = {3, 4}, lse_b = {-2e4f};
  merge();
  CHECK(a == b);
  CHECK(lse_a[0] == -2e4f);
  CHECK(
      message_of([&] {
        cpu::merge_attention_states({a.data(), {1, 1, 2}}, {lse_a.data(), {1, 1}},
                                    view_of(b, {1, 2, 1}), view_of(lse_b, {1, 1}));
      }) ==
      "merge_attention_states: out is (T=1, H=1, Dh=2) and (T=1, H=2, Dh=1), lse is (T=1, "
      "H=1) and (T=1, H=1); give both parts the same T, H and Dh");
}

TEST_CASE("flash attention says which shapes disagree") {
  std::vector<float> x(4096);
  std::vector<std::int32_t> starts{0, 2, 4}, falling{0, 5, 4};
  const auto run_with = [&](std::array<std::int64_t, 2> lse, std::array<std::int64_t, 3> k,
                            const std::vector<std::int32_t>& s, std::int64_t n) {
    return message_of([&] {
      cpu::flash_attention<float>({x.data(), {4, 4, 8}}, {x.data(), lse},
                                  {x.data(), {4, 4, 8}}, {x.data(), k}, {x.data(), k},
                                  {{s.data(), {n}}, {starts.data(), {3}}, 2}, 1,
                                  AttentionMask::causal);
    });
  };
  CHECK(run_with({4, 4}, {4, 2, 8}, starts, 3).empty());
  CHECK(run_with({4, 3}, {4, 2, 8}, starts, 3) ==
        "flash_attention: lse is (n_tokens=4, n_heads=3) but q is (n_tokens=4, n_heads=4, "
        "head_dim=8)");
  CHECK(run_with({4, 4}, {4, 3, 8}, starts, 3) ==
        "flash_attention: k is (kv_len=4, n_kv_heads=3, head_dim=8) but q is (n_tokens=4, "
        "n_heads=4, head_dim=8); give both the same head_dim of at least 1, and n_heads a "
        "multiple of n_kv_heads");
  CHECK(run_with({4, 4}, {4, 2, 8}, starts, 2) ==
        "flash_attention: query_starts has 2 elements and key_starts 3; give both one more "
        "than there are sequences");
  CHECK(run_with({4, 4}, {5, 2, 8}, starts, 3) ==
        "flash_attention: key_starts runs from 0 to 4; it must run from 0 to the 5 rows");
  CHECK(run_with({4, 4}, {4, 2, 8}, falling, 3) ==
        "flash_attention: query_starts[2] is 4 but the one before is 5; starts must rise");
}
