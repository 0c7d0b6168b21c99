#include "kernels/paged_flash.hpp"
#include "lab/kernels/check.hpp"

using namespace lab;
using namespace lab::test;

namespace {

const std::vector<PagedSequence> kRagged = {{1, 300},  {0, 0}, {5, 5},  {1, 1},
                                            {40, 170}, {0, 7}, {2, 129}};

template <class KV>
FlashResult result(const PagedProblem<KV>& p, AttentionMask mask) {
  Guarded<float> out(p.T * p.H * p.Dh), lse(p.T * p.H);
  std::fill(out.data(), out.data() + out.size(), 12345.0f);
  std::fill(lse.data(), lse.data() + lse.size(), 12345.0f);
  cpu::flash_attention<KV>(out.view({p.T, p.H, p.Dh}), lse.view({p.T, p.H}), p.queries(),
                           p.blocks(p.k), p.blocks(p.v), p.batch(), p.scale, mask);
  REQUIRE(out.intact());
  REQUIRE(lse.intact());
  return {{out.data(), out.data() + out.size()}, {lse.data(), lse.data() + lse.size()}};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

template <class KV>
void check_bits(const PagedProblem<KV>& p) {
  INFO(p.name());
  each_instruction_set([&] {
    for (const AttentionMask mask : kMasks) {
      set_n_threads(1);
      const FlashResult expected = gathered(p, mask, [](auto&&... x) {
        cpu::flash_attention<KV>(std::forward<decltype(x)>(x)...);
      });
      for (const int threads : {1, 3}) {
        set_n_threads(threads);
        const auto [out, lse] = result(p, mask);
        REQUIRE(same_bits(out, expected.first));
        REQUIRE(same_bits(lse, expected.second));
        if (mask == AttentionMask::none) continue;
        std::vector<float> paged(p.q.size(), 12345);
        cpu::paged_attention<KV>({paged.data(), {p.T, p.H, p.Dh}}, p.queries(),
                                 p.blocks(p.k), p.blocks(p.v), p.batch(), p.scale);
        REQUIRE(same_bits(out, paged));
      }
    }
    set_n_threads(1);
  });
}

}  // namespace

TEST_CASE("paged flash attention has the bits of gathered rows, for any block size") {
  for (const std::int64_t block_size : kBlockSizes) {
    check_bits(PagedProblem<float>(kRagged, 4, 2, 40, block_size));
    check_bits(PagedProblem<Half>(kRagged, 3, 1, 64, block_size));
    check_bits(PagedProblem<BFloat16>(kRagged, 2, 2, 31, block_size));
  }
  check_bits(PagedProblem<float>({}, 4, 2, 32, 16));
  check_bits(PagedProblem<float>({{0, 0}}, 4, 2, 32, 16));
  check_bits(PagedProblem<float>({{1, 2000}, {1, 30}, {3, 9}}, 2, 1, 64, 16));
  check_bits(sharing_blocks<float>(32));
}

TEST_CASE("paged flash attention is what the definition gives for gathered rows") {
  for (const AttentionMask mask : kMasks)
    for (const std::int64_t block_size : {1, 16, 200}) {
      const PagedProblem<float> p(kRagged, 4, 2, 20, block_size);
      const auto [out, lse] = result(p, mask);
      const auto [expected, expected_lse] = flash_expected(p, mask);
      REQUIRE(mismatch(out.data(), expected.data(), std::ssize(out), 1e-5, 1e-4) == "");
      REQUIRE(mismatch(lse.data(), expected_lse.data(), std::ssize(lse), 1e-5, 1e-5) == "");
    }
}

TEST_CASE("paged flash attention says what is wrong with a batch") {
  using P = PagedProblem<float>;
  const P right({{2, 5}, {1, 3}}, 4, 2, 8, 2);
  const auto said = [&](auto&& change) {
    P p = right;
    change(p);
    return message_of([&] { result(p, AttentionMask::causal); });
  };
  CHECK(said([](P&) {}).empty());
  CHECK(said([](P& p) { p.starts[0] = 1; }) ==
        "flash_attention: the first sequence starts at row 1; it must start at 0");
  CHECK(
      said([](P& p) { p.starts[1] = 4; }) ==
      "flash_attention: sequence 1 has rows 4 to 3 of 5; starts must rise and stay within "
      "the batch");
  CHECK(said([](P& p) { p.kv_lens[0] = 1; }) ==
        "flash_attention: sequence 0 has 1 positions; it needs at least its 2 queries, and "
        "4 blocks of 2 hold no more than 8");
  CHECK(said([](P& p) { p.kv_lens[1] = 5; }) ==
        "flash_attention: block 2 of sequence 1 is number -1; there are blocks 0 to 7");
}

TEST_CASE("paged flash attention says which shapes disagree") {
  const Extents<3> q{3, 4, 8};
  const Extents<4> k{6, 2, 2, 8};
  const auto said = [](Extents<3> queries, Extents<2> lse, Extents<4> keys, Extents<4> v,
                       std::int64_t starts) {
    return message_of([&] {
      check_flash_attention(queries, lse, queries, keys, v, {starts}, {2}, {2, 3});
    });
  };
  CHECK(said(q, {3, 4}, k, k, 3).empty());
  CHECK(said(q, {3, 3}, k, k, 3) ==
        "flash_attention: lse is (n_tokens=3, n_heads=3) but q is (n_tokens=3, n_heads=4, "
        "head_dim=8)");
  CHECK(said(q, {2, 4}, k, k, 3).find("lse is (n_tokens=2") != std::string::npos);
  CHECK(said(q, {3, 4}, k, {6, 2, 1, 8}, 3).find("flash_attention: k is (n_blocks=6") == 0);
  CHECK(said(q, {3, 4}, {6, 2, 2, 4}, {6, 2, 2, 4}, 3).find("same head_dim") !=
        std::string::npos);
  CHECK(said(q, {3, 4}, {6, 2, 3, 8}, {6, 2, 3, 8}, 3).find("multiple of n_kv_heads") !=
        std::string::npos);
  CHECK(said(q, {3, 4}, {6, 0, 2, 8}, {6, 0, 2, 8}, 3).find("at least one row") !=
        std::string::npos);
  CHECK(
      said(q, {3, 4}, k, k, 2) ==
      "flash_attention: 2 lengths, 2 query starts and 2 block tables; B sequences have B, "
      "B + 1 and B");
  CHECK(said({3, 4, 0}, {3, 4}, {6, 2, 2, 0}, {6, 2, 2, 0}, 3) ==
        "flash_attention: q is (n_tokens=3, n_heads=4, head_dim=0); give it a head_dim of "
        "at least 1");
}
