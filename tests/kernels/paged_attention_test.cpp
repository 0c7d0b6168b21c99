#include "lab/kernels/paged_attention.hpp"

#include "kernels/paged_problem.hpp"
#include "lab/kernels/check.hpp"

using namespace lab;
using namespace lab::test;

namespace {

const std::vector<PagedSequence> kRagged = {{1, 300},  {0, 0}, {5, 5},  {1, 1},
                                            {40, 170}, {0, 7}, {2, 129}};

/// The result of a batch, with what lies behind the sequences' rows.
template <class KV>
std::vector<float> result(const PagedProblem<KV>& p) {
  Guarded<float> out(p.T * p.H * p.Dh);
  std::fill(out.data(), out.data() + out.size(), 12345.0f);
  cpu::paged_attention<KV>(out.view({p.T, p.H, p.Dh}), p.queries(), p.blocks(p.k),
                           p.blocks(p.v), p.batch(), p.scale);
  REQUIRE(out.intact());
  return {out.data(), out.data() + out.size()};
}

template <class KV>
void check_bits(const PagedProblem<KV>& p) {
  INFO(p.name());
  each_instruction_set([&] {
    const std::vector<float> expected = p.one_by_one(cpu::attention<KV>);
    for (const int threads : {1, 3}) {
      set_n_threads(threads);
      const std::vector<float> paged = result(p);
      REQUIRE(std::memcmp(paged.data(), expected.data(), paged.size() * sizeof(float)) ==
              0);
    }
    set_n_threads(1);
  });
}

}  // namespace

TEST_CASE("paged attention gives the bits of contiguous attention, for any block size") {
  for (const std::int64_t block_size : {1, 3, 16, 64, 128, 200, 512}) {
    check_bits(PagedProblem<float>(kRagged, 4, 2, 40, block_size));
    check_bits(PagedProblem<Half>(kRagged, 3, 1, 64, block_size));
    check_bits(PagedProblem<BFloat16>(kRagged, 2, 2, 31, block_size));
  }
  check_bits(PagedProblem<float>({}, 4, 2, 32, 16));
  check_bits(PagedProblem<float>({{0, 0}}, 4, 2, 32, 16));
  check_bits(PagedProblem<float>({{1, 2000}, {1, 30}, {3, 9}}, 2, 1, 64, 16));
}

TEST_CASE("the reference of paged attention gathers rows for that of attention") {
  for (const std::int64_t block_size : {1, 16, 200}) {
    const PagedProblem<float> p(kRagged, 4, 2, 16, block_size);
    std::vector<float> out(p.q.size(), 12345);
    cpu::reference::paged_attention<float>({out.data(), {p.T, p.H, p.Dh}}, p.queries(),
                                           p.blocks(p.k), p.blocks(p.v), p.batch(),
                                           p.scale);
    REQUIRE(out == p.one_by_one(cpu::reference::attention<float>));
  }
}

TEST_CASE("sequences may share blocks") {
  PagedProblem<float> p({{1, 40}, {1, 40}}, 2, 1, 32, 16);
  // The second one's first two blocks become the first one's.
  for (const std::int64_t i : {0, 1})
    p.tables[std::size_t(p.max_blocks + i)] = p.tables[std::size_t(i)];
  for (std::size_t i = 0; i < 32 * 32; ++i)
    p.keys[1][i] = p.keys[0][i], p.values[1][i] = p.values[0][i];
  check_bits(p);
}

TEST_CASE("paged attention says what is wrong with a batch") {
  using P = PagedProblem<float>;
  const P right({{2, 5}, {1, 3}}, 4, 2, 8, 2);
  const auto said = [&](auto&& change) {
    P p = right;
    change(p);
    return message_of([&] { result(p); });
  };
  CHECK(said([](P& p) { p.starts[0] = 1; }) ==
        "paged_attention: the first sequence starts at row 1; it must start at 0");
  CHECK(
      said([](P& p) { p.starts[1] = 4; }) ==
      "paged_attention: sequence 1 has rows 4 to 3 of 5; starts must rise and stay within "
      "the batch");
  CHECK(said([](P& p) { p.starts[2] = 6; }).find("rows 2 to 6 of 5") != std::string::npos);
  CHECK(said([](P& p) { p.kv_lens[0] = 1; }) ==
        "paged_attention: sequence 0 has 1 positions; it needs at least its 2 queries, and "
        "4 blocks of 2 hold no more than 8");
  CHECK(said([](P& p) { p.kv_lens[0] = 9; }).find("has 9 positions") != std::string::npos);
  CHECK(said([](P& p) { p.kv_lens[1] = 5; }) ==
        "paged_attention: block 2 of sequence 1 is number -1; there are blocks 0 to 7");
  CHECK(said([](P& p) { p.tables[0] = 8; }).find("is number 8") != std::string::npos);
}

TEST_CASE("paged attention says which shapes disagree") {
  const Extents<3> q{3, 4, 8};
  const Extents<4> k{6, 2, 2, 8};
  const auto said = [](Extents<3> out, Extents<3> queries, Extents<4> keys, Extents<4> v,
                       std::int64_t starts, std::int64_t tables) {
    return message_of([&] {
      check_paged_attention(out, queries, keys, v, {starts}, {2}, {tables, 3});
    });
  };
  CHECK(said(q, q, k, k, 3, 2).empty());
  CHECK(said({3, 4, 9}, q, k, k, 3, 2).find("out is (n_tokens=3") != std::string::npos);
  CHECK(
      said(q, q, k, {6, 2, 1, 8}, 3, 2) ==
      "paged_attention: k is (n_blocks=6, block_size=2, n_kv_heads=2, head_dim=8) but v is "
      "(n_blocks=6, block_size=2, n_kv_heads=1, head_dim=8); give both the same shape");
  CHECK(said(q, q, {6, 2, 2, 4}, {6, 2, 2, 4}, 3, 2).find("same head_dim") !=
        std::string::npos);
  CHECK(said(q, q, {6, 2, 3, 8}, {6, 2, 3, 8}, 3, 2).find("multiple of n_kv_heads") !=
        std::string::npos);
  CHECK(said(q, q, {6, 0, 2, 8}, {6, 0, 2, 8}, 3, 2).find("at least one row") !=
        std::string::npos);
  for (const auto& [starts, tables] : {std::pair{2, 2}, std::pair{3, 1}})
    CHECK(said(q, q, k, k, starts, tables).find("B sequences have B, B + 1 and B") !=
          std::string::npos);
}
