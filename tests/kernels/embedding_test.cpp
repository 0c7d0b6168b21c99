#include "lab/kernels/embedding.hpp"
#include "kernels/support.hpp"
#include "lab/kernels/check.hpp"
#include "lab/kernels/dequantize.hpp"

using namespace lab;
using namespace lab::test;

namespace {
HostView<const std::int32_t, 1> view_ids(const std::vector<std::int32_t>& ids) {
  return {ids.data(), {std::int64_t(ids.size())}};
}
}  // namespace

TEST_CASE("an embedding is the decoded row of each id, in every format") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    INFO(name(dtype));
    const std::int64_t model_dim = is_quantized(dtype) ? 256 : 33, vocab_size = 70;
    Rng rng(2);
    const auto bytes = random_weights(rng, dtype, vocab_size, model_dim);
    const HostWeightView table{bytes.data(), dtype, vocab_size, model_dim};
    std::vector<float> all(std::size_t(vocab_size * model_dim));
    cpu::dequantize({all.data(), {vocab_size * model_dim}}, dtype, bytes.data());
    for (const std::int64_t n_tokens : {0, 1, 50}) {
      std::vector<std::int32_t> ids;
      for (std::int64_t t = 0; t < n_tokens; ++t)
        ids.push_back(std::int32_t((t * 31 + 69) % 70));
      for (const auto& embed : {cpu::embedding, cpu::reference::embedding}) {
        Guarded<float> out(n_tokens * model_dim);
        embed(out.view({n_tokens, model_dim}), view_ids(ids), table);
        for (std::int64_t t = 0; t < n_tokens; ++t)
          REQUIRE(std::memcmp(out.data() + t * model_dim,
                              &all[std::size_t(ids[std::size_t(t)] * model_dim)],
                              std::size_t(model_dim) * 4) == 0);
        REQUIRE(out.intact());
      }
    }
  }
}

TEST_CASE("an embedding says what is wrong") {
  std::vector<float> out(128);
  std::vector<std::byte> bytes(4 * 64 * 4);
  const HostWeightView table{bytes.data(), DType::f32, 4, 64};
  for (const auto& embed : {cpu::embedding, cpu::reference::embedding}) {
    const auto run = [&](std::vector<std::int32_t> ids, Extents<2> shape,
                         HostWeightView w) {
      return message_of([&] { embed({out.data(), shape}, view_ids(ids), w); });
    };
    CHECK(run({0, 4}, {2, 64}, table) ==
          "embedding: ids[1] is 4 but the table has vocab_size=4; give ids from 0 to 3");
    CHECK(run({-1, 0}, {2, 64}, table) ==
          "embedding: ids[0] is -1 but the table has vocab_size=4; give ids from 0 to 3");
    CHECK(run({0}, {2, 64}, table) ==
          "embedding: ids has n_tokens=1 but out is (n_tokens=2, model_dim=64)");
    CHECK(run({0}, {1, 32}, table) ==
          "embedding: table is (vocab_size=4, model_dim=64) but out is (n_tokens=1, "
          "model_dim=32)");
    CHECK(run({0}, {1, 33}, {bytes.data(), DType::q8_0, 4, 33}) ==
          "embedding: table has model_dim=33 but Q8_0 stores rows in blocks of 32");
  }
}
