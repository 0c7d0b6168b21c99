// The real model behind the engine: every request gets what it would get alone.
#include "lab/decode/generate.hpp"
#include "support.hpp"
#include "support/tiny_model.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::unique_ptr<Model> tiny_model(std::uint64_t seed) {
  const TempFolder folder;
  tiny_gguf(make_tiny_model(tiny_config(), {.seed = seed})).write(folder / "m.gguf");
  return load_model((folder / "m.gguf").string());
}

std::vector<std::int32_t> alone(Model& model, const Request& r) {
  GenerateOptions o;
  o.max_tokens = r.max_tokens;
  o.sampling = r.sampling;
  o.ignore_end = r.ignore_end;
  const auto cache = make_contiguous_cache(
      model.config(), 1,
      positions_needed(model.config(), std::ssize(r.prompt), r.max_tokens));
  return generate(model, *cache, r.prompt, o).ids;
}

Request random_request(Rng& rng, std::int64_t id, bool sampled) {
  Request r = make_request(id, 1 + rng.below(40), 1 + rng.below(20));
  for (auto& token : r.prompt) token = static_cast<std::int32_t>(rng.below(270));
  r.ignore_end = rng.below(2);
  r.priority = rng.below(3);
  if (sampled)
    r.sampling = {.temperature = 0.9, .top_k = 40, .top_p = 0.95, .seed = rng.bits()};
  return r;
}

/// Submits at random moments, aborts some. @return those that were to complete
std::map<std::int64_t, Request> serve(Engine& engine, Rng& rng, bool sampled) {
  std::map<std::int64_t, Request> sent;
  for (std::int64_t id = 0; id < 14; ++id) {
    const Request r = random_request(rng, id, sampled);
    engine.submit(r);
    sent[id] = r;
    for (std::int64_t i = rng.below(4); i > 0; --i) engine.step();
    if (rng.below(5) == 0)
      if (const auto victim = rng.below(id + 1); engine.abort(victim)) sent.erase(victim);
  }
  while (engine.step()) {
  }
  return sent;
}

}  // namespace

TEST_CASE("equivalence ladder: continuous batching changes no token, greedy or sampled") {
  const auto model = tiny_model(51);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    SchedulerConfig c;
    c.interleave = static_cast<Interleave>(seed % 3);
    c.chunked_prefill = c.interleave == Interleave::mixed;
    c.admission = static_cast<Admission>(seed / 3 % 2);
    c.max_num_seqs = 1 + rng.below(5);
    c.max_num_batched_tokens = c.chunked_prefill ? c.max_num_seqs + rng.below(30) : 80;
    // Prompts that go on in a later step before prompts that end in this one.
    if (c.chunked_prefill) c.prefill_chunk = std::int64_t(seed) % 4 * 3;
    c.preempt_for_order = c.chunked_prefill && c.admission == Admission::on_demand;
    const auto cache = make_contiguous_cache(model->config(), c.max_num_seqs, 64);
    SlotKvSpace kv(c.max_num_seqs, 64, cache.get());
    TransformerRunner runner(*model, *cache);
    SteadyClock clock;
    Engine engine(runner, kv, clock, c, by_priority(1e-3));
    const auto sent = serve(engine, rng, seed % 2 == 1);
    CAPTURE(seed);
    CHECK(kv.held() == 0);
    for (const RequestResult& result : engine.take_ended())
      if (const auto it = sent.find(result.request.id); it != sent.end())
        CHECK(result.ids == alone(*model, it->second));
    for (std::int64_t slot = 0; slot < c.max_num_seqs; ++slot)
      CHECK(cache->length(slot) == 0);
  }
}

TEST_CASE("preemption by recomputation with the real model changes no token") {
  const auto model = tiny_model(52);
  // A pool smaller than the slots hold, over a cache with room for all: memory runs out.
  struct ScarceSlots final : KvSpace {
    ScarceSlots(std::int64_t n, ContiguousKvCache& c) : pool(n), slots(8, 64, &c) {}
    std::int64_t longest() const override { return pool.longest(); }
    std::int64_t total() const override { return pool.total(); }
    std::int64_t held() const override { return pool.held(); }
    std::optional<KvLease> admit(std::span<const std::int32_t> text,
                                 std::int64_t n) override {
      const auto lease = pool.admit(text, n);
      if (lease) slots.admit(text, n);
      return lease;
    }
    bool grow(std::int64_t s, std::int64_t n) override { return pool.grow(s, n); }
    void release(std::int64_t s) override {
      pool.release(s);
      slots.release(s);
    }
    PooledKvSpace pool;
    SlotKvSpace slots;
  };
  std::int64_t preemptions = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Rng rng(seed);
    SchedulerConfig c;
    c.max_num_batched_tokens = 24;
    const auto cache = make_contiguous_cache(model->config(), 8, 64);
    ScarceSlots kv(90, *cache);
    TransformerRunner runner(*model, *cache);
    SteadyClock clock;
    Engine engine(runner, kv, clock, c);
    const auto sent = serve(engine, rng, seed % 2 == 1);
    CAPTURE(seed);
    for (const RequestResult& result : engine.take_ended()) {
      preemptions += result.preemptions;
      if (const auto it = sent.find(result.request.id); it != sent.end())
        CHECK(result.ids == alone(*model, it->second));
    }
    CHECK(kv.held() == 0);
  }
  CHECK(preemptions > 5);
}

TEST_CASE("the real model's limits: the context and the vocabulary") {
  const auto model = tiny_model(53);
  const auto cache = make_contiguous_cache(model->config(), 2, 128);
  SlotKvSpace kv(2, 128, cache.get());
  TransformerRunner runner(*model, *cache);
  SteadyClock clock;
  SchedulerConfig c;
  c.max_num_seqs = 2;
  Engine engine(runner, kv, clock, c);
  Request full = make_request(1, 128, 9);
  CHECK_THROWS_WITH(engine.submit(make_request(2, 129, 1)),
                    ContainsSubstring("129 tokens but the model's context holds 128"));
  engine.submit(full);
  while (engine.step()) {
  }
  CHECK(engine.take_ended().at(0).ids == alone(*model, full));
  Request outside = make_request(3, 2, 2);
  outside.prompt[0] = 272;
  CHECK_THROWS_WITH(engine.submit(outside),  // in a step it would fail its neighbours too
                    ContainsSubstring("token id 272 is outside the vocabulary of 272"));
  outside.prompt[0] = -1;
  CHECK_THROWS_WITH(engine.submit(outside), ContainsSubstring("token id -1"));
  CHECK_FALSE(engine.busy());
  engine.submit(make_request(4, 2, 2));
  while (engine.step()) {
  }
  CHECK(engine.take_ended().at(0).ids == alone(*model, make_request(4, 2, 2)));
}

TEST_CASE("slots must be the cache's") {
  const auto model = tiny_model(54);
  const auto cache = make_contiguous_cache(model->config(), 2, 16);
  CHECK_THROWS_WITH(SlotKvSpace(3, 16, cache.get()),
                    ContainsSubstring("not in a cache of 2 sequences"));
  CHECK_THROWS_WITH(
      SlotKvSpace(2, 17, cache.get()),
      ContainsSubstring("slots of 17 positions but the cache's sequences hold "
                        "16"));
}
