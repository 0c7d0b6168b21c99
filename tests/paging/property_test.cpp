// Random operations: what must hold after every one of them.
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

/// Sequences as a test sees them, and the memory that their blocks are.
struct World {
  explicit World(const BlockManagerConfig& c) : manager(c), memory(manager) {}

  std::vector<std::int64_t> numbers() const {
    std::vector<std::int64_t> n;
    for (const auto& [number, text] : texts) n.push_back(number);
    return n;
  }
  void open(std::vector<std::int32_t> text) {
    const std::int64_t free = manager.n_free();
    const auto s = manager.open(text, std::ssize(text));
    if (!s) {
      REQUIRE(manager.n_free() == free);
      ++refused;
      return;
    }
    hits += manager.length(*s);
    texts[*s] = text;
    compute(*s);
  }
  /// A forward pass of what the sequence does not store yet.
  void compute(std::int64_t s) {
    const auto copies = manager.take_copies();
    copied += std::ssize(copies);
    memory.copy(copies);
    memory.forward(s, texts[s], manager.length(s));
    manager.stored(s, texts[s]);
  }
  void append(std::int64_t s, std::vector<std::int32_t> tokens) {
    auto longer = texts[s];
    longer.insert(longer.end(), tokens.begin(), tokens.end());
    const auto before =
        std::vector<std::int32_t>(manager.blocks(s).begin(), manager.blocks(s).end());
    if (!manager.grow(s, std::ssize(longer))) {
      REQUIRE(std::ranges::equal(before, manager.blocks(s)));
      ++refused;
      return;
    }
    texts[s] = longer;
    compute(s);
  }
  void fork(std::int64_t s) {
    const std::int64_t f = manager.fork(s);
    texts[f] = texts[s];
    texts[f].resize(std::size_t(manager.length(f)));
    ++forks;
  }
  void truncate(std::int64_t s, std::int64_t n) {
    manager.truncate(s, n);
    texts[s].resize(std::size_t(n));
  }
  void close(std::int64_t s) {
    manager.close(s);
    texts.erase(s);
  }

  BlockManager manager;
  KeyMemory memory;
  std::map<std::int64_t, std::vector<std::int32_t>> texts;
  std::int64_t hits = 0, copied = 0, forks = 0, refused = 0;
};

std::vector<std::int32_t> random_text(Rng& rng, std::int64_t n) {
  std::vector<std::int32_t> t;  // mostly one token, so that texts often begin alike
  for (std::int64_t i = 0; i < n; ++i) t.push_back(rng.below(6) == 0);
  return t;
}

void random_operation(World& w, Rng& rng) {
  const auto numbers = w.numbers();
  const std::int64_t what = numbers.empty() ? 0 : rng.below(12);
  const std::int64_t s =
      numbers.empty() ? 0 : numbers[std::size_t(rng.below(std::ssize(numbers)))];
  if (what < 3)
    w.open(random_text(rng, 1 + rng.below(14)));
  else if (what < 7)
    w.append(s, random_text(rng, 1 + rng.below(6)));
  else if (what < 9)
    w.fork(s);
  else if (what == 9)
    w.truncate(s, rng.below(w.manager.length(s) + 1));
  else
    w.close(s);
}

BlockManagerConfig random_blocks(Rng& rng) {
  BlockManagerConfig c;
  c.n_blocks = 4 + rng.below(30);
  c.block_size = 1 + rng.below(5);
  c.prefix_caching = rng.below(4) > 0;
  c.fork_mode = rng.below(2) ? ForkMode::append_only : ForkMode::copy_on_write;
  // A third of the time every hash collides.
  if (rng.below(3) == 0)
    c.hash = [](std::uint64_t, std::span<const std::int32_t>) { return std::uint64_t{7}; };
  return c;
}

}  // namespace

TEST_CASE("20,000 random operations on blocks: conserved, counted, never written shared") {
  std::int64_t operations = 0, hits = 0, copied = 0, forks = 0, refused = 0;
  for (std::uint64_t seed = 0; operations < 20000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    World w(random_blocks(rng));
    for (int i = 0; i < 200; ++i, ++operations) {
      random_operation(w, rng);
      check_blocks(w.manager, w.numbers());
    }
    for (const std::int64_t s : w.numbers()) w.close(s);
    REQUIRE(w.manager.n_free() == w.manager.n_blocks());
    hits += w.hits, copied += w.copied, forks += w.forks, refused += w.refused;
  }
  // The test has seen what it is about.
  CHECK(hits > 2000);
  CHECK(copied > 200);
  CHECK(forks > 2000);
  CHECK(refused > 500);
}

TEST_CASE("12,000 random operations on engines over blocks: every answer is the solo one") {
  std::int64_t operations = 0, preempted = 0, aborted = 0, completed = 0, cached = 0;
  for (std::uint64_t seed = 0; operations < 12000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    SchedulerConfig c;
    c.max_num_seqs = 1 + rng.below(6);
    c.max_num_batched_tokens = c.max_num_seqs + rng.below(24);
    c.interleave = Interleave(rng.below(3));
    c.admission = Admission(rng.below(2));
    c.chunked_prefill = c.interleave == Interleave::mixed && rng.below(3) > 0;
    c.preempt_for_order = c.interleave == Interleave::mixed &&
                          c.admission == Admission::on_demand && rng.below(2);
    BlockManagerConfig blocks = random_blocks(rng);
    blocks.n_blocks = (20 + rng.below(20)) / blocks.block_size + 1;
    PagedBench b(blocks, c, by_priority(1 + double(rng.below(20))), 32,
                 0.2 * rng.uniform());
    std::map<std::int64_t, Request> sent;
    for (int i = 0; i < 150; ++i, ++operations) {
      const std::int64_t what = rng.below(10);
      if (what < 4) {
        Request r = make_request(i, 1 + rng.below(14), 1 + rng.below(12));
        r.prompt = random_text(rng, std::ssize(r.prompt));
        r.ignore_end = rng.below(2);
        r.priority = rng.below(3);
        if (rng.below(2)) r.sampling = {.temperature = 1, .seed = rng.bits()};
        try {
          b.engine.submit(r);
          sent[i] = r;
        } catch (const Error&) {
        }
      } else if (what == 4) {
        b.engine.abort(rng.below(i + 1));
      } else {
        b.step();
      }
      std::vector<std::int64_t> running;
      for (const LiveRequest* r : b.engine.scheduler().running())
        running.push_back(r->sequence);
      check_blocks(b.manager, running);
    }
    b.run();
    REQUIRE(b.manager.n_free() == b.manager.n_blocks());
    REQUIRE(b.results.size() == sent.size());
    preempted += b.n_preempted;
    for (const auto& [id, r] : sent) {
      const RequestResult& result = b.results[id];
      cached += result.cached_tokens;
      if (result.end == RequestEnd::aborted) {
        ++aborted;
      } else {
        ++completed;
        REQUIRE(result.ids == solo(r, 32));
      }
    }
  }
  CHECK(preempted > 100);
  CHECK(aborted > 100);
  CHECK(completed > 1500);
  CHECK(cached > 1000);
}

TEST_CASE("100,000 requests on blocks leave nothing behind, and a step does not grow") {
  VirtualClock clock;
  SimulatedModel model(clock, {.step_s = 1e-3, .token_s = 1e-5});
  BlockManagerConfig blocks;
  blocks.n_blocks = 40;
  blocks.block_size = 4;
  BlockManager manager(blocks);
  PagedKvSpace kv(manager);
  SchedulerConfig c;
  c.max_num_seqs = 16;
  c.max_num_batched_tokens = 64;
  Engine engine(model, kv, clock, c);
  Rng rng(5);
  constexpr std::int64_t kRequests = 100000;
  std::int64_t next = 0, ended = 0, preempted = 0, cached = 0;
  std::int64_t work[2] = {}, steps[2] = {};
  while (next < kRequests || engine.busy()) {
    for (; next < kRequests && engine.scheduler().n_waiting() < 40; ++next) {
      Request r = make_request(next, 1 + rng.below(14), 1 + rng.below(12));
      r.prompt = random_text(rng, std::ssize(r.prompt));
      engine.submit(r);
    }
    if (next % 97 == 0) engine.abort(next - 30);
    const auto step = engine.step();
    if (!step) continue;
    preempted += step->n_preempted;
    const bool late = ended >= kRequests / 10;
    work[late] += step->n_visited;
    ++steps[late];
    for (const RequestResult& r : engine.take_ended()) {
      ++ended;
      cached += r.cached_tokens;
    }
    REQUIRE(manager.n_cached() <= manager.n_blocks());
    REQUIRE(manager.n_sequences() <= c.max_num_seqs);
  }
  CHECK(ended == kRequests);
  CHECK(manager.n_free() == manager.n_blocks());
  CHECK(preempted > 1000);
  CHECK(cached > 10000);
  CHECK(std::abs(double(work[1]) / double(steps[1]) / (double(work[0]) / double(steps[0])) -
                 1) < 0.05);
}
