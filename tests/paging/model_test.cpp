// The real model on blocks: bit for bit what it is on a contiguous cache.
#include "lab/decode/generate.hpp"
#include "lab/decode/recorded_decode.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "support.hpp"
#include "support/tiny_model.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::unique_ptr<Model> tiny_model(std::uint64_t seed, Device& device = cpu_device()) {
  const TempFolder folder;
  Config c = tiny_config();
  if (device.name() != "cpu") c.head_dim = 16;  // a GPU's kernels want multiples of 8
  tiny_gguf(make_tiny_model(c, {.seed = seed})).write(folder / "m.gguf");
  return load_model((folder / "m.gguf").string(), device);
}

std::vector<std::int32_t> random_tokens(Rng& rng, std::int64_t n) {
  std::vector<std::int32_t> t;
  for (std::int64_t i = 0; i < n; ++i) t.push_back(std::int32_t(rng.below(270)));
  return t;
}

std::vector<float> floats(HostView<const float, 2> v) {
  return {v.data, v.data + v.size()};
}

/// Two sequences and a third that comes and goes, so that their blocks lie scattered.
void compare(Model& model, DType dtype, std::int64_t block_size, std::uint64_t seed) {
  CAPTURE(name(dtype), block_size);
  Rng rng(seed);
  BlockManagerConfig c;
  c.block_size = block_size;
  c.n_blocks = 200 / block_size + 6;
  BlockManager manager(c);
  PagedKvCache paged(model.config(), manager, dtype, model.device());
  const auto contiguous = make_contiguous_cache(model.transformer(), 2, 60, dtype);
  std::vector<std::vector<std::int32_t>> texts = {random_tokens(rng, 7),
                                                  random_tokens(rng, 20)};
  const std::int64_t guest = manager.open(random_tokens(rng, 9), 9).value();
  std::vector<std::int64_t> numbers;
  for (const auto& t : texts) numbers.push_back(manager.open(t, 1).value());
  manager.close(guest);
  std::int64_t stored[] = {0, 0};
  for (int step = 0; step < 6; ++step) {
    ForwardBatch a, b;
    for (std::size_t s = 0; s < 2; ++s) {
      if (step > 0) texts[s].push_back(std::int32_t(rng.below(270)));
      if (step == 3 && s == 1) continue;  // not everyone is in every batch
      const auto fresh = std::span(texts[s]).subspan(std::size_t(stored[s]));
      REQUIRE(manager.grow(numbers[s], std::ssize(texts[s])));
      a.add(numbers[s], stored[s], fresh, true);
      b.add(std::int64_t(s), stored[s], fresh, true);
      stored[s] = std::ssize(texts[s]);
    }
    REQUIRE(floats(model.transformer().forward(a, paged)) ==
            floats(model.transformer().forward(b, *contiguous)));
    for (std::size_t s = 0; s < 2; ++s)
      if (stored[s] == std::ssize(texts[s])) manager.stored(numbers[s], texts[s]);
  }
}

}  // namespace

TEST_CASE("a paged cache gives the bits of a contiguous one, for any block size and type") {
  const auto model = tiny_model(61);
  for (const std::int64_t block_size : {1, 2, 3, 5, 8, 16, 31, 64})
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      compare(*model, dtype, block_size, 3);
}

TEST_CASE("a paged cache gives the bits of a contiguous one on the emulated GPU") {
  const auto device = make_device("simt");
  const auto model = tiny_model(61, *device);
  compare(*model, DType::f16, 3, 4);
  compare(*model, DType::f32, 16, 5);
}

TEST_CASE("recorded steps notice when the table has grown") {
  const auto device = make_device("simt");
  const auto model = tiny_model(62, *device);
  BlockManagerConfig c;
  c.block_size = 2;
  BlockManager manager(c);
  PagedKvCache paged(model->config(), manager, DType::f32, *device);
  const auto contiguous = make_contiguous_cache(model->transformer(), 1, 20);
  const std::int64_t s = manager.open(tokens_from(5, 1), 1).value();
  RecordedDecode decode(model->transformer(), paged, s);
  std::vector<std::int32_t> text;
  for (std::int64_t t = 0; t < 18; ++t) {
    text.push_back(std::int32_t(40 + t));
    REQUIRE(manager.grow(s, t + 1));
    const auto recorded = floats(decode.step(t, text.back()));
    manager.stored(s, text);
    REQUIRE(recorded == floats(model->transformer().forward(
                            single_sequence(t, std::span(text).last(1)), *contiguous)));
  }
}

TEST_CASE(
    "equivalence ladder: engines on blocks give the greedy tokens of the naive loop") {
  const auto model = tiny_model(63);
  std::int64_t preempted = 0, cached = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    SchedulerConfig c;
    c.max_num_seqs = 1 + rng.below(5);
    c.max_num_batched_tokens = c.max_num_seqs + rng.below(30);
    BlockManagerConfig blocks;
    blocks.block_size = std::vector{1, 2, 3, 4, 7, 16, 33, 64}[std::size_t(seed % 8)];
    blocks.n_blocks = 66 / blocks.block_size + 2;  // little more than one request needs
    BlockManager manager(blocks);
    PagedKvCache cache(model->config(), manager, DType::f32, model->device());
    PagedKvSpace kv(manager);
    TransformerRunner runner(*model, cache);
    VirtualClock clock;
    Engine engine(runner, kv, clock, c);
    const auto beginning = random_tokens(rng, 20);  // which some have in common
    std::map<std::int64_t, Request> sent;
    for (std::int64_t id = 0; id < 8; ++id) {
      Request r = make_request(id, 1, 1 + rng.below(20));
      r.prompt = random_tokens(rng, 1 + rng.below(20));
      if (rng.below(2))
        r.prompt.insert(r.prompt.begin(), beginning.begin(), beginning.end());
      engine.submit(r);
      sent[id] = r;
      for (std::int64_t i = rng.below(6); i > 0; --i) engine.step();
    }
    while (engine.step()) {
    }
    CHECK(manager.n_free() == manager.n_blocks());
    for (const RequestResult& result : engine.take_ended()) {
      GenerateOptions o;
      o.max_tokens = result.request.max_tokens;
      o.ignore_end = true;
      REQUIRE(result.ids == generate_naive(*model, result.request.prompt, o).ids);
      preempted += result.preemptions;
      cached += result.cached_tokens;
    }
  }
  CHECK(preempted > 5);
  CHECK(cached > 50);
}

TEST_CASE("errors of the paged cache") {
  const auto model = tiny_model(64);
  BlockManagerConfig c;
  c.n_blocks = 4;
  c.block_size = 4;
  BlockManager manager(c);
  PagedKvCache cache(model->config(), manager, DType::f32, model->device());
  CHECK(cache.bytes() == 16 * kv_bytes_per_token(model->config(), 4));
  const auto s = manager.open(tokens_from(0, 3), 3).value();
  const auto forward = [&](std::int64_t sequence, std::int64_t position, std::int64_t n) {
    return message_of([&] {
      ForwardBatch batch;
      batch.add(sequence, position, tokens_from(1, n));
      model->transformer().forward(batch, cache);
    });
  };
  CHECK(forward(s, 1, 1) ==
        "paged KV cache: sequence 0 goes on at position 1 but 0 positions are stored; feed "
        "its tokens in order");
  CHECK(
      forward(s, 0, 5) ==
      "paged KV cache: sequence 0 needs 5 positions but its 1 blocks of 4 hold 4; give it "
      "more blocks first");
  CHECK(forward(3, 0, 1).find("there is no sequence 3") != std::string::npos);
  const BlockCopy wrong{0, 4};
  CHECK(message_of([&] {
          cache.copy({&wrong, 1});
        }) == "paged KV cache: block 0 is to be copied to 4; there are blocks 0 to 3");
  CHECK(message_of([&] {
          PagedKvCache other(model->config(), manager, DType::q8_0, model->device());
        }).find("choose f32, f16 or bf16") != std::string::npos);
}
