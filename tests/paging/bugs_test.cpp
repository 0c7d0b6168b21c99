// Bugs that other engines had, by the reports that describe them; the numbers in brackets
// are those of our list of edge cases. The others of the list are in tests/batching.
#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

BlockManagerConfig small(std::int64_t n_blocks = 8, std::int64_t block_size = 4) {
  BlockManagerConfig c;
  c.n_blocks = n_blocks;
  c.block_size = block_size;
  return c;
}

std::int64_t open_stored(BlockManager& m, const std::vector<std::int32_t>& text) {
  const auto s = m.open(text, std::ssize(text)).value();
  m.stored(s, text);
  return s;
}

SchedulerConfig seqs(std::int64_t n) {
  SchedulerConfig c;
  c.max_num_seqs = n;
  return c;
}

}  // namespace

TEST_CASE("nano-vllm#163 (1): a block that is used again is not found as what it was") {
  BlockManager m(small(2));
  m.close(open_stored(m, tokens_from(0, 8)));
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 8);
  const auto s = open_stored(m, tokens_from(50, 8));
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 0);
  CHECK(m.cached_prefix(tokens_from(50, 9)) == 8);
  m.close(s);
}

TEST_CASE(
    "nano-vllm PR#211 (2): preempted requests hit the prefix cache when they resume") {
  PagedBench b(small(8), seqs(2));
  for (const int id : {0, 1}) b.engine.submit(make_request(id, 9, 12));
  b.run();
  CHECK(b.n_preempted > 0);
  CHECK(b.results[0].cached_tokens + b.results[1].cached_tokens > 0);
  for (const int id : {0, 1}) CHECK(b.results[id].ids == solo(make_request(id, 9, 12)));
}

TEST_CASE("nano-vllm#30, #91, #150, #240 (3): lengths around a block's boundary") {
  for (const std::int64_t prompt : {1, 3, 4, 5, 7, 8, 9})
    for (const std::int64_t answer : {1, 2, 3, 4, 5}) {
      CAPTURE(prompt, answer);
      PagedBench b(small(), seqs(2));
      for (const int id : {0, 1}) {  // the second one hits what the first one stored
        Request r = make_request(0, prompt, answer);
        r.id = id;
        b.engine.submit(r);
        b.run();
        CHECK(b.results[id].ids == solo(make_request(0, prompt, answer)));
      }
      CHECK(b.results[1].cached_tokens == (prompt - 1) / 4 * 4);
      CHECK(b.manager.n_free() == 8);
    }
}

TEST_CASE("vllm#1556, #1584, PR#3347 (4): forks of forks free each block once") {
  BlockManager m(small());
  const auto a = open_stored(m, tokens_from(0, 10));
  const auto b = m.fork(a), c = m.fork(b);
  CHECK(m.pool().references(m.blocks(a)[0]) == 3);
  m.close(b);
  m.close(a);
  CHECK(m.pool().references(m.blocks(c)[0]) == 1);
  m.close(c);
  CHECK(m.n_free() == 8);
}

TEST_CASE("vllm PR#22209 (5): no block is set aside, and no count goes below zero") {
  BlockPool pool(2);
  CHECK(pool.n_free() == 2);
  CHECK(message_of([&] { pool.release(0, true); }).find("is free already") !=
        std::string::npos);
  CHECK(pool.references(0) == 0);
}

TEST_CASE("vllm PR#20512 (6): a fork after a truncation has no block that was given back") {
  BlockManager m(small());
  const auto a = open_stored(m, tokens_from(0, 12));
  const std::int32_t last = m.blocks(a)[2];
  m.truncate(a, 6);
  const auto b = m.fork(a);
  CHECK(std::ssize(m.blocks(b)) == 2);
  CHECK(m.pool().references(last) == 0);
  check_blocks(m, std::vector<std::int64_t>{a, b});
}

TEST_CASE("openvino.genai#3722 (7): equal hashes of different texts are no hit") {
  BlockManagerConfig c = small(20);
  c.hash = [](std::uint64_t, std::span<const std::int32_t>) { return std::uint64_t{1}; };
  BlockManager m(c);
  open_stored(m, tokens_from(0, 8));
  open_stored(m, tokens_from(50, 8));
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 8);
  CHECK(m.cached_prefix(tokens_from(90, 9)) == 0);
  // The second block of one text after the first of another.
  auto mixed = tokens_from(0, 4);
  for (const auto t : tokens_from(54, 5)) mixed.push_back(t);
  CHECK(m.cached_prefix(mixed) == 4);
}

TEST_CASE("vllm#44701 (8): a salt is no token, and no other salt's hash") {
  BlockManager m(small());
  const auto text = tokens_from(0, 5);
  const auto s = m.open(text, 5, chained_block_hash(0, text)).value();
  m.stored(s, text);
  CHECK(m.cached_prefix(text) == 0);
  CHECK(m.cached_prefix(text, 1) == 0);
}

TEST_CASE("vllm#49449 (9): a history that was rewritten is not found as it was") {
  BlockManager m(small());
  const auto a = open_stored(m, tokens_from(0, 8));
  m.truncate(a, 5);
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 8);  // the rows are still there
  auto edited = tokens_from(0, 5);
  for (const auto t : tokens_from(70, 3)) edited.push_back(t);
  REQUIRE(m.grow(a, 8));
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 4);  // they are about to be written
  m.stored(a, edited);
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 4);
  edited.push_back(1);
  CHECK(m.cached_prefix(edited) == 8);
}

TEST_CASE("tt-vllm#415 (10): a hit changes no token") {
  PagedBench b(small(40), seqs(4));
  for (const int id : {0, 1, 2}) {
    Request r = make_request(7, 13, 9);
    r.id = id;
    b.engine.submit(r);
    b.run();
  }
  CHECK(b.results[0].cached_tokens == 0);
  CHECK(b.results[2].cached_tokens == 12);
  CHECK(b.results[2].ids == b.results[0].ids);
}

TEST_CASE("kvcached#446, #451 (11): a hit is always whole blocks of the storage's size") {
  for (const std::int64_t size : {1, 2, 3, 5, 16}) {
    BlockManager m(small(40, size));
    open_stored(m, tokens_from(0, 20));
    for (std::int64_t n = 1; n <= 21; ++n) {
      const std::int64_t hit = m.cached_prefix(tokens_from(0, n));
      CHECK(hit % size == 0);
      CHECK(hit == (std::min<std::int64_t>(n - 1, 20)) / size * size);
    }
  }
}

TEST_CASE("llama.cpp#28139 (12): an empty pool and an empty text divide nothing by zero") {
  BlockManager m(small());
  CHECK(m.usage().waste() == 0);
  CHECK(m.usage().saving() == 0);
  CHECK(m.cached_prefix({}) == 0);
  const auto s = m.open({}, 0).value();
  CHECK(m.blocks(s).empty());
  CHECK(m.usage().saving() == 0);
  m.close(s);
}

TEST_CASE("mini-sglang PR#52 (14): what is in use is not evicted, its last block neither") {
  BlockManager m(small(4));
  const auto a = open_stored(m, tokens_from(0, 8));
  const auto held = std::vector<std::int32_t>(m.blocks(a).begin(), m.blocks(a).end());
  for (int i = 1; i < 20; ++i) m.close(open_stored(m, tokens_from(100 * i, 8)));
  CHECK(!m.open(tokens_from(50, 9), 9));
  CHECK(std::ranges::equal(m.blocks(a), held));
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 8);
}

TEST_CASE("sglang#35270, PR#10637, mllm PR#656 (15): free and owned are all there is") {
  BlockManager m(small());
  const auto a = open_stored(m, tokens_from(0, 9)), b = open_stored(m, tokens_from(0, 9));
  check_blocks(m, std::vector<std::int64_t>{a, b});
  CHECK(m.usage().blocks + m.n_free() == m.n_blocks());
  m.close(a);
  CHECK(m.usage().blocks + m.n_free() == m.n_blocks());
  m.close(b);
  CHECK(m.n_free() == m.n_blocks());
}

TEST_CASE(
    "bytedance sglang PR#508 (16): half a block in common is no hit, and holds nothing") {
  BlockManager m(small());
  const auto a = open_stored(m, tokens_from(0, 8));
  auto half = tokens_from(0, 6);
  for (const auto t : tokens_from(80, 3)) half.push_back(t);
  const auto b = m.open(half, 9).value();
  CHECK(m.length(b) == 4);
  CHECK(m.pool().references(m.blocks(a)[0]) == 2);
  CHECK(m.pool().references(m.blocks(a)[1]) == 1);
}

TEST_CASE("sglang PR#948 (18): a request larger than the pool is refused at once") {
  PagedBench b(small(4), seqs(2));
  CHECK(!message_of([&] { b.engine.submit(make_request(0, 10, 8)); }).empty());
  b.engine.submit(make_request(1, 10, 7));  // 16 positions: all there is
  b.run();
  CHECK(b.results[1].ids == solo(make_request(1, 10, 7)));
}

TEST_CASE("xllm PR#1984 (19): forks that part write to blocks of their own") {
  BlockManager m(small());
  KeyMemory memory(m);
  auto left = tokens_from(0, 6);
  const auto a = m.open(left, 6).value();
  memory.forward(a, left, 0);
  m.stored(a, left);
  const auto b = m.fork(a);
  auto right = left;
  left.push_back(90);
  right.push_back(91);
  for (const auto& [s, text] : {std::pair{a, left}, std::pair{b, right}}) {
    REQUIRE(m.grow(s, 7));
    memory.copy(m.take_copies());
    memory.forward(s, text, 6);  // throws if it reads or writes another's
    m.stored(s, text);
  }
  memory.forward(a, left, 7);
  memory.forward(b, right, 7);
}

TEST_CASE("vllm-ascend#15990 (20): the free queue stays whole whatever is revived") {
  BlockPool pool(12);
  Rng rng(9);
  std::vector<std::int32_t> owned;
  std::set<std::int32_t> free;
  for (std::int32_t b = 0; b < 12; ++b) free.insert(b);
  for (int i = 0; i < 10000; ++i) {
    const std::int64_t what = rng.below(3);
    if (what == 0 && !free.empty()) {  // revive any
      const auto b = *std::next(free.begin(), rng.below(std::ssize(free)));
      pool.share(b);
      free.erase(b);
      owned.push_back(b);
    } else if (what == 1) {
      const auto b = pool.allocate();
      REQUIRE(b.has_value() == !free.empty());
      if (!b) continue;
      REQUIRE(free.erase(*b) == 1);
      owned.push_back(*b);
    } else if (!owned.empty()) {
      std::swap(owned[std::size_t(rng.below(std::ssize(owned)))], owned.back());
      pool.release(owned.back(), rng.below(2) == 0);
      free.insert(owned.back());
      owned.pop_back();
    }
    REQUIRE(pool.n_free() == std::ssize(free));
  }
  // From head to tail it holds each free block once.
  while (const auto b = pool.allocate()) REQUIRE(free.erase(*b) == 1);
  CHECK(free.empty());
}

TEST_CASE(
    "a truncated block that was shared is not found once its last owner writes to it") {
  BlockManager m(small());
  const auto a = open_stored(m, tokens_from(0, 8));
  const auto b = m.fork(a);
  m.truncate(a, 5);
  m.close(b);
  REQUIRE(m.grow(a, 8));
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 4);
}

TEST_CASE("vllm docs, Time 7: a hit is shared before any block is taken") {
  BlockManager m(small(3));
  m.close(open_stored(m, tokens_from(0, 8)));  // free queue: an empty block, then the hit's
  const auto s = m.open(tokens_from(0, 12), 12).value();
  CHECK(m.length(s) == 8);
  std::set<std::int32_t> distinct(m.blocks(s).begin(), m.blocks(s).end());
  CHECK(distinct.size() == 3);
}
