#include "support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::vector<std::int32_t> blocks_of(const BlockManager& m, std::int64_t s) {
  return {m.blocks(s).begin(), m.blocks(s).end()};
}

BlockManagerConfig small(std::int64_t n_blocks = 8, std::int64_t block_size = 4) {
  BlockManagerConfig c;
  c.n_blocks = n_blocks;
  c.block_size = block_size;
  return c;
}

}  // namespace

TEST_CASE("block pool: the least recently freed block is given out first") {
  BlockPool pool(3);
  CHECK(pool.allocate() == 0);
  CHECK(pool.allocate() == 1);
  CHECK(pool.allocate() == 2);
  CHECK(!pool.allocate());
  CHECK(pool.release(1, true));
  CHECK(pool.release(0, true));
  CHECK(pool.release(2, false));  // holds nothing: before all others
  CHECK(pool.n_free() == 3);
  CHECK(pool.next_free() == 2);
  pool.share(1);  // revived from the middle of the queue
  CHECK(pool.references(1) == 1);
  CHECK(pool.allocate() == 2);
  CHECK(pool.allocate() == 0);
  CHECK(pool.n_free() == 0);
}

TEST_CASE("block pool: shared blocks are free when the last owner lets go") {
  BlockPool pool(2);
  pool.allocate();
  pool.share(0);
  CHECK(pool.references(0) == 2);
  CHECK(!pool.release(0, true));
  CHECK(pool.release(0, true));
  CHECK(message_of([&] { pool.release(0, true); }) ==
        "block pool: block 0 is free already; each owner releases it once");
  CHECK(message_of([&] { pool.share(2); }) ==
        "block pool: there is no block 2; there are blocks 0 to 1");
  CHECK(message_of([] { BlockPool empty(0); }) ==
        "block pool: 0 blocks asked for; it needs 1 to 2147483646");
}

TEST_CASE("a table has as many blocks as its positions need, at every boundary") {
  BlockManager m(small());
  for (const auto& [positions, blocks] :
       {std::pair{1, 1}, {3, 1}, {4, 1}, {5, 2}, {7, 2}, {8, 2}, {9, 3}}) {
    const auto s = m.open(tokens_from(100 * positions, positions), positions).value();
    CHECK(std::ssize(m.blocks(s)) == blocks);
    CHECK(m.length(s) == 0);
    m.close(s);
  }
  CHECK(m.n_free() == 8);
}

TEST_CASE("opening and growing are all or nothing") {
  BlockManager m(small(4));
  const auto a = m.open(tokens_from(0, 9), 9).value();
  CHECK(!m.open(tokens_from(50, 5), 5));
  CHECK(m.n_free() == 1);
  CHECK(m.grow(a, 16));
  CHECK(!m.grow(a, 17));
  CHECK(std::ssize(m.blocks(a)) == 4);
  m.close(a);
  CHECK(m.n_sequences() == 0);
  CHECK(message_of([&] { m.close(a); }) ==
        "block manager: there is no sequence 0; it was never opened or is closed");
  CHECK(message_of([&] { m.length(7); }).find("no sequence 7") != std::string::npos);
}

TEST_CASE("what is stored can be found by its whole blocks, less the last token") {
  BlockManager m(small());
  const auto text = tokens_from(0, 10);
  const auto a = m.open(text, 10).value();
  CHECK(m.cached_prefix(text) == 0);  // not before it is computed
  m.stored(a, text);
  CHECK(m.cached_prefix(text) == 8);
  CHECK(m.cached_prefix(tokens_from(0, 9)) == 8);
  CHECK(m.cached_prefix(tokens_from(0, 8)) == 4);  // the last token's logits are wanted
  CHECK(m.cached_prefix(tokens_from(0, 5)) == 4);
  CHECK(m.cached_prefix(tokens_from(0, 4)) == 0);
  CHECK(m.cached_prefix(tokens_from(1, 10)) == 0);
  CHECK(m.cached_prefix({}) == 0);
  const auto b = m.open(text, 12).value();
  CHECK(m.length(b) == 8);
  CHECK(m.blocks(b)[0] == m.blocks(a)[0]);
  CHECK(m.blocks(b)[1] == m.blocks(a)[1]);
  CHECK(m.blocks(b)[2] != m.blocks(a)[2]);
  check_blocks(m, std::vector<std::int64_t>{a, b});
}

TEST_CASE("a cached block is revived after its owner is gone, until it is evicted") {
  BlockManager m(small(4));
  const auto text = tokens_from(0, 9);
  const auto a = m.open(text, 9).value();
  m.stored(a, text);
  const auto old = blocks_of(m, a);
  m.close(a);
  CHECK(m.n_free() == 4);
  const auto b = m.open(text, 9).value();
  CHECK(m.length(b) == 8);
  CHECK(m.blocks(b)[0] == old[0]);
  m.close(b);
  // Two new blocks take the empty ones, a third the end of the text, not its beginning.
  const auto c = m.open(tokens_from(50, 12), 12).value();
  CHECK(m.cached_prefix(text) == 4);
  m.close(c);
}

TEST_CASE("hits do not count as free blocks twice") {
  BlockManager m(small(3));
  const auto text = tokens_from(0, 9);
  const auto a = m.open(text, 8).value();
  m.stored(a, std::span(text).first(8));
  m.close(a);
  // Three blocks are free, two of them the hit's: one is left for the rest.
  CHECK(!m.open(text, 13));
  CHECK(m.n_free() == 3);
  CHECK(m.open(text, 12));
}

TEST_CASE("salts share nothing") {
  BlockManager m(small());
  const auto text = tokens_from(0, 9);
  const auto a = m.open(text, 9, 1).value();
  m.stored(a, text);
  CHECK(m.cached_prefix(text, 1) == 8);
  CHECK(m.cached_prefix(text, 2) == 0);
  CHECK(m.cached_prefix(text) == 0);
}

TEST_CASE("copy-on-write: the first who writes to a shared block copies it") {
  BlockManager m(small());
  const auto text = tokens_from(0, 6);
  const auto a = m.open(text, 6).value();
  m.stored(a, text);
  const auto b = m.fork(a);
  CHECK(m.length(b) == 6);
  CHECK(blocks_of(m, a) == blocks_of(m, b));
  CHECK(m.grow(b, 7));
  const auto copies = m.take_copies();
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].from == m.blocks(a)[1]);
  CHECK(copies[0].to == m.blocks(b)[1]);
  CHECK(m.blocks(a)[0] == m.blocks(b)[0]);
  CHECK(m.grow(a, 7));  // it is alone now
  CHECK(m.take_copies().empty());
  check_blocks(m, std::vector<std::int64_t>{a, b});
}

TEST_CASE("a fork at a block boundary copies nothing") {
  BlockManager m(small());
  const auto text = tokens_from(0, 8);
  const auto a = m.open(text, 8).value();
  m.stored(a, text);
  const auto b = m.fork(a);
  CHECK(m.grow(b, 9));
  CHECK(m.grow(a, 9));
  CHECK(m.take_copies().empty());
  CHECK(m.blocks(a)[2] != m.blocks(b)[2]);
}

TEST_CASE("append-only: a fork computes the last block itself") {
  BlockManagerConfig c = small();
  c.fork_mode = ForkMode::append_only;
  BlockManager m(c);
  const auto text = tokens_from(0, 6);
  const auto a = m.open(text, 6).value();
  m.stored(a, text);
  const auto b = m.fork(a);
  CHECK(m.length(b) == 4);
  CHECK(std::ssize(m.blocks(b)) == 1);
  CHECK(m.grow(b, 7));
  CHECK(m.grow(a, 7));
  CHECK(m.take_copies().empty());
  check_blocks(m, std::vector<std::int64_t>{a, b});
}

TEST_CASE("copying needs a block, or nothing happens") {
  BlockManager m(small(2));
  const auto text = tokens_from(0, 6);
  const auto a = m.open(text, 6).value();
  m.stored(a, text);
  const auto b = m.fork(a);
  CHECK(!m.grow(b, 7));
  CHECK(blocks_of(m, a) == blocks_of(m, b));
  m.close(a);
  CHECK(m.grow(b, 7));
  CHECK(m.take_copies().empty());
}

TEST_CASE("usage: waste and sharing, by hand") {
  BlockManager m(small());
  CHECK(m.usage().waste() == 0);
  CHECK(m.usage().saving() == 0);
  const auto text = tokens_from(0, 6);
  const auto a = m.open(text, 6).value();
  m.stored(a, text);
  CHECK(m.usage().waste() == 0.25);  // 2 of 8
  const auto b = m.fork(a);
  CHECK(m.usage().blocks == 2);
  CHECK(m.usage().owners == 4);
  CHECK(m.usage().saving() == 0.5);
  CHECK(m.grow(b, 7));
  CHECK(m.usage().blocks == 3);
  CHECK(m.usage().saving() == 0.25);
  CHECK(m.usage().stored == 8);  // 4 shared, 2 and 2
}

TEST_CASE("errors of the block manager, the prefix cache and the paged space") {
  CHECK(message_of([] { BlockManager m(small(4, 0)); }) ==
        "prefix cache: blocks of 0 tokens; at least 1 is needed");
  BlockManager m(small());
  const auto a = m.open(tokens_from(0, 3), 3).value();
  CHECK(message_of([&] { m.stored(a, tokens_from(0, 5)); }) ==
        "block manager: 5 positions stored in sequence 0, whose 1 blocks hold 4");
  CHECK(message_of([&] { m.truncate(a, 1); }) ==
        "block manager: cannot truncate sequence 0 to 1 positions; it stores 0");
  CHECK(
      message_of([&] { PagedKvSpace space(m, 1.0); }) ==
      "paged KV space: the watermark is 1; it is a share of the blocks, from 0 to below 1");
}

TEST_CASE("the watermark leaves blocks to those that run, except to who is alone") {
  BlockManager m(small(10));
  PagedKvSpace space(m, 0.3);
  CHECK(space.longest() == 40);
  CHECK(space.admit(tokens_from(0, 36), 36));  // alone: 9 of 10
  CHECK(!space.admit(tokens_from(50, 4), 4));
  CHECK(space.held() == 36);
  space.release(0);
  CHECK(space.admit(tokens_from(0, 16), 16));
  CHECK(space.admit(tokens_from(50, 12), 12));
  CHECK(!space.admit(tokens_from(90, 4), 4));  // would leave 2 of the 3
}
