#include "lab/kernels/paged_attention.hpp"

#include "kernels/paged_problem.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

template <class KV>
std::vector<float> result(const PagedProblem<KV>& p) {
  const DeviceArray<float> q(p.q);
  const DeviceArray<KV> k(p.k), v(p.v);
  const DeviceArray<std::int32_t> starts(p.starts), kv_lens(p.kv_lens), tables(p.tables);
  const auto out = DeviceArray<float>::output(std::vector<float>(p.q.size(), 12345));
  const std::int64_t B = std::ssize(p.sequences);
  gpu::paged_attention<KV>(out.view({p.T, p.H, p.Dh}), q.view({p.T, p.H, p.Dh}),
                           k.view({p.n_blocks, p.block_size, p.K, p.Dh}),
                           v.view({p.n_blocks, p.block_size, p.K, p.Dh}),
                           {starts.view({B + 1}), kv_lens.view({B}),
                            tables.view({B, p.max_blocks}), p.max_queries()},
                           p.scale, stream());
  REQUIRE(out.intact());
  return out.host();
}

template <class KV>
void check(const PagedProblem<KV>& p) {
  INFO(p.name());
  REQUIRE(lab::test::mismatch(result(p), p.one_by_one(cpu::reference::attention<KV>), 1e-5,
                              1e-4) == "");
}

}  // namespace

LAB_PARITY(paged_attention, "decode: ragged histories in blocks of any size") {
  for (const std::int64_t block_size : {1, 3, 16, 64, 300}) {
    const std::vector<PagedSequence> few = {{1, 70}, {4, 4}, {0, 0}, {1, 257}, {3, 300}};
    check(PagedProblem<Half>(few, 6, 2, 64, block_size));
    check(PagedProblem<BFloat16>(few, 2, 1, 32, block_size));
    if (kTraced) continue;
    check(PagedProblem<float>(few, 3, 3, 128, block_size));
    check(PagedProblem<float>({{1, 1000}, {2, 20}}, 4, 1, 40, block_size));
  }
}

LAB_PARITY(paged_attention, "prompts and decodes in one batch") {
  for (const std::int64_t block_size : {1, 7, 16, 200}) {
    check(PagedProblem<Half>({{20, 50}, {1, 90}, {5, 5}, {2, 260}}, 4, 2, 64, block_size));
    if (kTraced) continue;
    check(PagedProblem<BFloat16>({{33, 33}, {0, 9}, {1, 300}}, 3, 1, 80, block_size));
    check(PagedProblem<float>({{70, 140}, {6, 6}}, 2, 2, 128, block_size));
  }
}

LAB_PARITY(paged_attention, "a sequence's bits do not depend on its neighbours or blocks") {
  const auto rows = [](const std::vector<float>& x, std::size_t from, std::size_t n) {
    return std::vector<float>(x.begin() + std::ptrdiff_t(from * 128),
                              x.begin() + std::ptrdiff_t((from + n) * 128));
  };
  // The generator makes the first sequence the same in both, for equal T.
  const PagedProblem<Half> a({{2, 280}, {9, 20}}, 2, 1, 64, 16);
  PagedProblem<Half> b({{2, 280}, {1, 1}, {8, 11}}, 2, 1, 64, 5);
  b.q = a.q;
  const auto copy = [&](std::vector<Half>& to, const std::vector<Half>& from) {
    for (std::int64_t s = 0; s < 280; ++s)
      std::copy_n(from.begin() + s * 64, 64,
                  to.begin() + (b.tables[std::size_t(s / 5)] * 5 + s % 5) * 64);
  };
  copy(b.k, a.keys[0]);
  copy(b.v, a.values[0]);
  const std::vector<float> beside_a_prompt = rows(result(a), 0, 2);
  REQUIRE(beside_a_prompt == rows(result(b), 0, 2));
  PagedProblem<Half> c({{2, 280}, {1, 1}}, 2, 1, 64, 5);  // decodes only
  std::copy_n(a.q.begin(), 2 * 128, c.q.begin());
  for (const auto& [to, from] : {std::pair{&c.k, &a.keys[0]}, {&c.v, &a.values[0]}})
    for (std::int64_t s = 0; s < 280; ++s)
      std::copy_n(from->begin() + s * 64, 64,
                  to->begin() + (c.tables[std::size_t(s / 5)] * 5 + s % 5) * 64);
  REQUIRE(beside_a_prompt == rows(result(c), 0, 2));
}

LAB_PARITY(paged_attention, "says what it cannot do") {
  const PagedProblem<float> p({{1, 4}}, 2, 1, 20, 4);
  CHECK(message_of([&] { result(p); }) ==
        "paged_attention: head_dim is 20, but on a GPU it must be a multiple of 8, at most "
        "256; run this model with --device cpu");
  const DeviceArray<float> x(std::vector<float>(64));
  const DeviceArray<std::int32_t> n(std::vector<std::int32_t>{0, 1, 1});
  const auto blocks = x.view({1, 1, 1, 8});
  CHECK(message_of([&] {
          gpu::paged_attention<float>(
              x.view({1, 1, 8}), x.view({1, 1, 8}), blocks, blocks,
              {n.view({2}), n.view({1}), {n.data(), {1, (1LL << 30) + 1}}, 1}, 1, stream());
        }) ==
        "paged_attention: 1073741825 blocks of 1 positions; a sequence has at most 2^30");
}
