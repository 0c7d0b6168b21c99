#include "kernels/paged_flash.hpp"
#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

namespace {

template <class KV>
FlashResult result(const PagedProblem<KV>& p, AttentionMask mask) {
  const DeviceArray<float> q(p.q);
  const DeviceArray<KV> k(p.k), v(p.v);
  const DeviceArray<std::int32_t> starts(p.starts), kv_lens(p.kv_lens), tables(p.tables);
  const auto out = DeviceArray<float>::output(std::vector<float>(p.q.size(), 12345));
  const auto lse =
      DeviceArray<float>::output(std::vector<float>(std::size_t(p.T * p.H), 12345));
  const std::int64_t B = std::ssize(p.sequences);
  gpu::flash_attention<KV>(out.view({p.T, p.H, p.Dh}), lse.view({p.T, p.H}),
                           q.view({p.T, p.H, p.Dh}),
                           k.view({p.n_blocks, p.block_size, p.K, p.Dh}),
                           v.view({p.n_blocks, p.block_size, p.K, p.Dh}),
                           {starts.view({B + 1}), kv_lens.view({B}),
                            tables.view({B, p.max_blocks}), p.max_queries()},
                           p.scale, mask, stream());
  REQUIRE(out.intact());
  REQUIRE(lse.intact());
  return {out.host(), lse.host()};
}

/// As in flash_attention.cpp: tensor cores round the weights to 11 bits for f16, 8 for
/// bf16.
template <class KV>
void check(const PagedProblem<KV>& any) {
  const PagedProblem<KV> p = rounded(any);
  const bool on_tensor_cores =
      !std::is_same_v<KV, float> && (p.Dh == 32 || p.Dh == 64 || p.Dh == 128);
  const double tolerance = !on_tensor_cores           ? 1e-5
                           : std::is_same_v<KV, Half> ? 1.5e-3
                                                      : 1.2e-2;
  for (const AttentionMask mask : kMasks) {
    INFO(p.name() << (mask == AttentionMask::causal ? " causal" : " no mask"));
    const auto [out, lse] = result(p, mask);
    const auto [expected, expected_lse] = flash_expected(p, mask);
    REQUIRE(lab::test::mismatch(out, expected, tolerance, 1e-4) == "");
    REQUIRE(lab::test::mismatch(lse, expected_lse, 2e-5, 1e-5) == "");
  }
}

}  // namespace

LAB_PARITY(flash_attention,
           "paged, tensor cores: prompts and decodes in blocks of any size") {
  const std::vector<PagedSequence> ragged = {{20, 50}, {1, 90}, {0, 9}, {5, 5}, {33, 70}};
  for (const std::int64_t block_size : kBlockSizes) {
    check(PagedProblem<Half>(ragged, 4, 2, 64, block_size));
    check(PagedProblem<BFloat16>(ragged, 3, 1, 32, block_size));
    if (kTraced) continue;
    check(PagedProblem<Half>(ragged, 2, 2, 128, block_size));
    check(PagedProblem<Half>({{70, 140}, {2, 260}}, 2, 1, 32, block_size));
  }
}

LAB_PARITY(flash_attention,
           "paged, CUDA cores: f32 and other sizes of head, in blocks of any size") {
  const std::vector<PagedSequence> ragged = {{20, 50}, {1, 90}, {0, 9}, {5, 5}};
  for (const std::int64_t block_size : kBlockSizes) {
    check(PagedProblem<float>(ragged, 4, 2, 64, block_size));
    if (kTraced) continue;
    check(PagedProblem<float>(ragged, 2, 1, 136, block_size));
    check(PagedProblem<Half>(ragged, 3, 1, 40, block_size));
    check(PagedProblem<BFloat16>(ragged, 2, 2, 96, block_size));
  }
}

LAB_PARITY(flash_attention,
           "paged, few queries: keys in blocks are split, and the parts merged") {
  const std::vector<PagedSequence> few = {{1, 513}, {4, 600}, {0, 9}, {2, 2}, {3, 1025}};
  for (const std::int64_t block_size : kBlockSizes) {
    check(PagedProblem<Half>(few, 4, 1, 64, block_size));
    if (kTraced) continue;
    check(PagedProblem<BFloat16>(few, 2, 2, 32, block_size));
    check(PagedProblem<float>(few, 3, 1, 40, block_size));
  }
}

LAB_PARITY(flash_attention, "paged, sequences may share blocks") {
  check(sharing_blocks<Half>(64));
  check(sharing_blocks<float>(40));
}

LAB_PARITY(flash_attention,
           "paged, the order of the blocks and unused capacity change no bit") {
  // Equal but for where blocks lie, and for 60 more entries in each table: more splits,
  // too.
  const PagedProblem<Half> a({{2, 700}, {4, 30}}, 2, 1, 64, 16);
  PagedProblem<Half> b = a;
  b.max_blocks += 60;
  b.tables.assign(std::size_t(2 * b.max_blocks), -1);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < std::size_t(a.max_blocks); ++j) {
      const std::int32_t block = a.tables[i * std::size_t(a.max_blocks) + j];
      if (block >= 0)
        b.tables[i * std::size_t(b.max_blocks) + j] = std::int32_t(a.n_blocks) - 1 - block;
    }
  const std::int64_t size = 16 * 64;
  for (std::int64_t block = 0; block < a.n_blocks; ++block) {
    const std::int64_t to = (a.n_blocks - 1 - block) * size;
    std::copy_n(a.k.begin() + block * size, size, b.k.begin() + to);
    std::copy_n(a.v.begin() + block * size, size, b.v.begin() + to);
  }
  REQUIRE(result(a, AttentionMask::causal) == result(b, AttentionMask::causal));
}

LAB_PARITY(flash_attention, "paged, says what it cannot do") {
  const PagedProblem<float> p({{1, 4}}, 2, 1, 20, 4);
  CHECK(message_of([&] { result(p, AttentionMask::causal); }) ==
        "flash_attention: head_dim is 20, but on a GPU it must be a multiple of 8, at most "
        "256; run this model with --device cpu");
  const DeviceArray<float> x(std::vector<float>(64));
  const DeviceArray<std::int32_t> n(std::vector<std::int32_t>{0, 1, 1});
  const auto blocks = x.view({1, 1, 1, 8});
  CHECK(message_of([&] {
          gpu::flash_attention<float>(
              x.view({1, 1, 8}), x.view({1, 1}), x.view({1, 1, 8}), blocks, blocks,
              {n.view({2}), n.view({1}), {n.data(), {1, (1LL << 30) + 1}}, 1}, 1,
              AttentionMask::causal, stream());
        }) ==
        "flash_attention: 1073741825 blocks of 1 positions; a sequence has at most 2^30");
}
