#include <exercise.hpp>

#include "testing.hpp"

using exercise::Block;
using exercise::kNoBlock;
using exercise::Sequence;
using exercise::Token;
using testing::random_floats;
using testing::same;
using Floats = std::vector<float>;

namespace {

/// The pool that task 3 gets: blocks of 2 positions, a key and a value of one number each.
/// It hands out blocks 0, 1, 2, ... and takes note of what must not happen.
class SuppliedBlocks final : public exercise::Blocks {
 public:
  explicit SuppliedBlocks(std::size_t n_blocks)
      : counts_(n_blocks), k_(2 * n_blocks, -1), v_(2 * n_blocks, -1) {}

  std::size_t block_size() const override { return 2; }
  Block allocate() override {
    const auto free = std::find(counts_.begin(), counts_.end(), 0u);
    if (free == counts_.end()) throw std::length_error("no block is free");
    *free = 1;
    return Block(free - counts_.begin());
  }
  void share(Block block) override { ++in_use(block); }
  void release(Block block) override { --in_use(block); }
  std::size_t ref_count(Block block) const override { return counts_.at(block); }
  void copy(Block from, Block to) override {
    in_use(from), in_use(to);
    for (std::size_t i = 0; i < 2; ++i) {
      k_[2 * to + i] = k_[2 * from + i];
      v_[2 * to + i] = v_[2 * from + i];
    }
    ++copies;
  }
  void write(Block block, std::size_t offset, std::span<const float> k,
             std::span<const float> v) override {
    if (in_use(block) > 1) ++writes_to_shared;
    k_.at(2 * block + offset) = k[0];
    v_.at(2 * block + offset) = v[0];
  }

  /// What a sequence reads: its keys, then its values.
  Floats read(const Sequence& s) const {
    Floats out;
    for (const Floats* array : {&k_, &v_})
      for (std::size_t p = 0; p < s.length; ++p)
        out.push_back(array->at(2 * s.table.at(p / 2) + p % 2));
    return out;
  }
  std::size_t n_free() const {
    return std::size_t(std::count(counts_.begin(), counts_.end(), 0u));
  }

  int copies = 0, writes_to_shared = 0;

 private:
  std::size_t& in_use(Block block) {
    if (counts_.at(block) == 0) throw std::invalid_argument("a free block is used");
    return counts_[block];
  }
  std::vector<std::size_t> counts_;
  Floats k_, v_;
};

/// Stores a token with key `x` and value `-x`.
void put(SuppliedBlocks& blocks, Sequence& s, float x) {
  const float minus = -x;
  exercise::append(blocks, s, {&x, 1}, {&minus, 1});
}

/// A sequence of the tokens 1 to n, made without the student's code.
Sequence written(SuppliedBlocks& blocks, std::size_t n) {
  Sequence s;
  for (; s.length < n; ++s.length) {
    if (s.length % 2 == 0) s.table.push_back(blocks.allocate());
    const float x = float(s.length + 1), minus = -x;
    blocks.write(s.table.back(), s.length % 2, {&x, 1}, {&minus, 1});
  }
  return s;
}

/// A second sequence on the same blocks, made without the student's code.
Sequence shared(SuppliedBlocks& blocks, const Sequence& s) {
  for (const Block block : s.table) blocks.share(block);
  return s;
}

/// Attention over contiguous keys and values (S, K, Dh), in double.
Floats contiguous_attention(const Floats& q, const Floats& k, const Floats& v,
                            const exercise::PagedShape& shape) {
  const std::size_t dim = shape.head_dim, row = shape.n_kv_heads * dim;
  Floats out;
  for (std::size_t h = 0; h < shape.n_heads; ++h) {
    const std::size_t head = h * shape.n_kv_heads / shape.n_heads * dim;
    std::vector<double> weights;
    for (std::size_t s = 0; s < k.size() / row; ++s) {
      double dot = 0;
      for (std::size_t d = 0; d < dim; ++d)
        dot += double(q[h * dim + d]) * double(k[s * row + head + d]);
      weights.push_back(dot / std::sqrt(double(dim)));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& w : weights) total += w = std::exp(w - largest);
    for (std::size_t d = 0; d < dim; ++d) {
      double o = 0;
      for (std::size_t s = 0; s < weights.size(); ++s)
        o += weights[s] / total * double(v[s * row + head + d]);
      out.push_back(float(o));
    }
  }
  return out;
}

/// Contiguous rows, brought to where the table says; NaN everywhere else.
Floats scattered(const Floats& rows, std::size_t row, const std::vector<Block>& table,
                 std::size_t block_size, std::size_t n_blocks) {
  Floats pool(n_blocks * block_size * row, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t s = i / row;
    pool[(table[s / block_size] * block_size + s % block_size) * row + i % row] = rows[i];
  }
  return pool;
}

/// Whether attention through the table is the same as over contiguous rows.
testing::Comparison agrees(std::size_t kv_len, const std::vector<Block>& table,
                           const exercise::PagedShape& shape, float size = 1,
                           double tolerance = 1e-5) {
  const std::size_t row = shape.n_kv_heads * shape.head_dim, n_blocks = 9;
  Floats q = random_floats(shape.n_heads * shape.head_dim, 1);
  for (float& x : q) x *= size;
  const Floats k = random_floats(kv_len * row, 2), v = random_floats(kv_len * row, 3);
  return same(
      exercise::paged_attention(q, scattered(k, row, table, shape.block_size, n_blocks),
                                scattered(v, row, table, shape.block_size, n_blocks), table,
                                kv_len, shape),
      contiguous_attention(q, k, v, shape), tolerance);
}

/// A hash that shows what went into it: the parent's digits, then the tokens'.
std::uint64_t readable(std::uint64_t parent, std::span<const Token> tokens) {
  for (const Token t : tokens) parent = parent * 10 + std::uint64_t(t);
  return parent;
}

using Cache = std::unordered_map<std::uint64_t, exercise::CachedBlock>;
using Hashes = std::vector<std::uint64_t>;
using Found = std::vector<Block>;

/// What the text 1 2 3 4 5 6 left in blocks 7, 4 and 5.
Cache left_by_123456() {
  return {{12, {7, kNoBlock, {1, 2}}}, {1234, {4, 7, {3, 4}}}, {123456, {5, 4, {5, 6}}}};
}

Found prefix_of(const std::vector<Token>& text, const Hashes& hashes, const Cache& cache) {
  return exercise::cached_prefix(text, hashes, 2, cache);
}

}  // namespace

// ---------------------------------------------------------------- task 1

TEST_CASE("pool: every block is handed out once", "[task1][1pt]") {
  INFO("hint: take free_.back(), remove it from the list, and set its count to 1");
  exercise::Pool pool(3);
  std::vector<Block> got{pool.allocate(), pool.allocate(), pool.allocate()};
  std::sort(got.begin(), got.end());
  CHECK(got == std::vector<Block>{0, 1, 2});
  CHECK(pool.n_free() == 0);
  CHECK(pool.ref_count(1) == 1);
}

TEST_CASE("pool: an empty pool is an error", "[task1][1pt]") {
  INFO("hint: look whether a block is free before you take one");
  exercise::Pool pool(1), empty(0);
  pool.allocate();
  CHECK_THROWS_AS(pool.allocate(), std::length_error);
  CHECK_THROWS_AS(empty.allocate(), std::length_error);
}

TEST_CASE("pool: a shared block is free after the last release", "[task1][2pt]") {
  INFO("hint: release takes 1 off the count; only a count of 0 makes the block free");
  exercise::Pool pool(1);
  const Block b = pool.allocate();
  pool.share(b);
  pool.share(b);
  CHECK(pool.ref_count(b) == 3);
  pool.release(b);
  pool.release(b);
  CHECK(pool.ref_count(b) == 1);
  CHECK(pool.n_free() == 0);
  pool.release(b);
  CHECK(pool.ref_count(b) == 0);
  CHECK(pool.n_free() == 1);
}

TEST_CASE("pool: a free block is neither released nor shared", "[task1][1pt]") {
  INFO("hint: a count of 0 means free: throw std::invalid_argument and change nothing");
  exercise::Pool pool(2);
  const Block b = pool.allocate();
  pool.release(b);
  CHECK_THROWS_AS(pool.release(b), std::invalid_argument);
  CHECK_THROWS_AS(pool.share(b), std::invalid_argument);
  CHECK(pool.n_free() == 2);
}

// ---------------------------------------------------------------- task 2

TEST_CASE("table: how many blocks a text needs", "[task2][1pt]") {
  INFO("hint: divide and round up: a full block more only where tokens are left over");
  CHECK(exercise::blocks_needed(0, 16) == 0);
  CHECK(exercise::blocks_needed(1, 16) == 1);
  CHECK(exercise::blocks_needed(16, 16) == 1);
  CHECK(exercise::blocks_needed(17, 16) == 2);
  CHECK(exercise::blocks_needed(5, 1) == 5);
}

TEST_CASE("table: the slot of a position", "[task2][1pt]") {
  INFO("hint: table[position / block_size] * block_size + position % block_size");
  const std::vector<Block> table{5, 0, 2};
  Found slots;
  for (std::size_t p = 0; p < 9; ++p) slots.push_back(exercise::slot_of(table, p, 3));
  CHECK(slots == Found{15, 16, 17, 0, 1, 2, 6, 7, 8});
}

TEST_CASE("table: a position behind the table is an error", "[task2][1pt]") {
  INFO("hint: the index into the table must be less than its size");
  const std::vector<Block> table{5, 0};
  CHECK(exercise::slot_of(table, 5, 3) == 2);
  CHECK_THROWS_AS(exercise::slot_of(table, 6, 3), std::out_of_range);
}

// ---------------------------------------------------------------- task 3

TEST_CASE("append: a new block where the last one is full", "[task3][1pt]") {
  INFO("hint: length % block_size is the row in the block; 0 asks for a new block");
  SuppliedBlocks blocks(4);
  Sequence s;
  for (const float x : {1.0f, 2.0f, 3.0f}) put(blocks, s, x);
  CHECK(s.length == 3);
  CHECK(s.table.size() == 2);
  CHECK(blocks.n_free() == 2);
  CHECK(same(blocks.read(s), Floats{1, 2, 3, -1, -2, -3}));
}

TEST_CASE("branch: nothing is copied, all is counted", "[task3][1pt]") {
  INFO("hint: share every block of the table, the full ones too");
  SuppliedBlocks blocks(3);
  const Sequence a = written(blocks, 3);
  const Sequence b = exercise::branch(blocks, a);
  CHECK(b.table == a.table);
  CHECK(b.length == 3);
  CHECK(blocks.copies == 0);
  CHECK(blocks.ref_count(a.table[0]) == 2);
  CHECK(blocks.ref_count(a.table[1]) == 2);
}

TEST_CASE("append: a shared block is copied before it is written", "[task3][2pt]") {
  INFO("hint: ref_count > 1: allocate, copy, release the old block, put the new one in");
  SuppliedBlocks blocks(4);
  Sequence a = written(blocks, 3), b = shared(blocks, a);
  const Block old = a.table[1];
  put(blocks, b, 40);
  CHECK(blocks.writes_to_shared == 0);
  CHECK(same(blocks.read(a), Floats{1, 2, 3, -1, -2, -3}));
  CHECK(same(blocks.read(b), Floats{1, 2, 3, 40, -1, -2, -3, -40}));
  CHECK(blocks.ref_count(old) == 1);
}

TEST_CASE("append: the last one to refer to a block writes in place", "[task3][1pt]") {
  INFO("hint: after the other sequence has its copy, the count is 1: no copy is needed");
  SuppliedBlocks blocks(2);
  Sequence a = written(blocks, 1), b = shared(blocks, a);
  put(blocks, a, 20);
  put(blocks, b, 30);
  CHECK(blocks.copies == 1);
  CHECK(blocks.n_free() == 0);
  CHECK(same(blocks.read(a), Floats{1, 20, -1, -20}));
  CHECK(same(blocks.read(b), Floats{1, 30, -1, -30}));
}

TEST_CASE("append: full blocks stay shared", "[task3][1pt]") {
  INFO("hint: a full block is never written again: the next token goes to a new one");
  SuppliedBlocks blocks(3);
  Sequence a = written(blocks, 2), b = shared(blocks, a);
  put(blocks, a, 10);
  put(blocks, b, 20);
  CHECK(blocks.copies == 0);
  CHECK(blocks.ref_count(a.table[0]) == 2);
  CHECK(same(blocks.read(b), Floats{1, 2, 20, -1, -2, -20}));
}

TEST_CASE("append: without a free block nothing changes", "[task3][1pt]") {
  INFO("hint: allocate first, since it may throw; then change the rest");
  SuppliedBlocks blocks(1);
  Sequence a = written(blocks, 1), b = shared(blocks, a);
  CHECK_THROWS_AS(put(blocks, b, 9), std::length_error);
  CHECK(b.length == 1);
  CHECK(b.table == a.table);
  CHECK(blocks.ref_count(0) == 2);
  Sequence fresh;
  CHECK_THROWS_AS(put(blocks, fresh, 9), std::length_error);
  CHECK(fresh.table.empty());
}

TEST_CASE("truncate: gives up the blocks behind the end", "[task3][1pt]") {
  INFO("hint: blocks_needed(length) blocks stay, from the front; release the others");
  SuppliedBlocks blocks(4);
  Sequence a = written(blocks, 7);
  exercise::truncate(blocks, a, 3);
  CHECK(a.length == 3);
  CHECK(a.table == Found{0, 1});
  CHECK(blocks.n_free() == 2);
  exercise::truncate(blocks, a, 2);
  CHECK(a.table == Found{0});
  exercise::truncate(blocks, a, 0);
  CHECK(blocks.n_free() == 4);
}

TEST_CASE("truncate: a shared block stays for the other", "[task3][1pt]") {
  INFO("hint: release takes one reference away; the block is not this sequence's to clear");
  SuppliedBlocks blocks(3);
  Sequence a = written(blocks, 4), b = shared(blocks, a);
  exercise::truncate(blocks, b, 0);
  CHECK(b.table.empty());
  CHECK(blocks.ref_count(0) == 1);
  CHECK(blocks.ref_count(1) == 1);
  CHECK(same(blocks.read(a), Floats{1, 2, 3, 4, -1, -2, -3, -4}));
}

// ---------------------------------------------------------------- task 4

TEST_CASE("attention: one block, in its place", "[task4][1pt]") {
  INFO("hint: scores, minus the largest, exp, divided by their sum, times the values");
  CHECK(agrees(4, {0}, {2, 2, 4, 4}));
}

TEST_CASE("attention: blocks in any order", "[task4][2pt]") {
  INFO("hint: ask the table for every position, for the keys and for the values");
  CHECK(agrees(12, {6, 1, 8, 3}, {2, 2, 4, 3}));
  CHECK(agrees(5, {4, 2, 0, 7, 1}, {1, 1, 8, 1}));
}

TEST_CASE("attention: stops at the length, not at the end of the block", "[task4][1pt]") {
  INFO("hint: rows behind kv_len hold what a sequence before this one left, or NaN");
  CHECK(agrees(5, {3, 7}, {2, 2, 4, 4}));
  CHECK(agrees(1, {3, 7, 2}, {2, 2, 4, 4}));
}

TEST_CASE("attention: several query heads read one key/value head", "[task4][1pt]") {
  INFO("hint: query head h reads key/value head h / (H / K)");
  CHECK(agrees(6, {5, 2}, {6, 2, 4, 4}));
  CHECK(agrees(6, {5, 2}, {4, 1, 4, 4}));
}

TEST_CASE("attention: large scores", "[task4][1pt]") {
  INFO("hint: exp(1000) is infinite: subtract the largest score first");
  CHECK(agrees(7, {1, 4}, {2, 1, 4, 4}, 5000, 0.02));
}

// ---------------------------------------------------------------- task 5

TEST_CASE("hashes: one for each full block, chained", "[task5][1pt]") {
  INFO("hint: the hash of a block goes into the next one's as its parent; kRoot is first");
  CHECK(exercise::block_hashes(std::vector<Token>{1, 2, 3, 4, 5, 6}, 2, readable) ==
        Hashes{12, 1234, 123456});
  CHECK(exercise::block_hashes(std::vector<Token>{7, 8, 3, 4}, 2, readable) ==
        Hashes{78, 7834});
}

TEST_CASE("hashes: a block that is not full has none", "[task5][1pt]") {
  INFO("hint: the last block may still grow, and then it would be another one");
  CHECK(exercise::block_hashes(std::vector<Token>{1, 2, 3}, 2, readable) == Hashes{12});
  CHECK(exercise::block_hashes(std::vector<Token>{1}, 2, readable).empty());
}

TEST_CASE("prefix: the blocks of the same beginning", "[task5][1pt]") {
  INFO("hint: go on while blocks are found, and stop at the first that is not");
  CHECK(prefix_of({1, 2, 3, 4, 9, 9, 9}, {12, 1234, 123499}, left_by_123456()) ==
        Found{7, 4});
  CHECK(prefix_of({9, 9, 9}, {99}, left_by_123456()).empty());
}

TEST_CASE("prefix: a gap ends it", "[task5][1pt]") {
  INFO("hint: a block behind one that is gone cannot be used: its past is not there");
  Cache cache = left_by_123456();
  cache.erase(1234);
  CHECK(prefix_of({1, 2, 3, 4, 5, 6, 7}, {12, 1234, 123456}, cache) == Found{7});
}

TEST_CASE("prefix: the last token is computed", "[task5][1pt]") {
  INFO("hint: a block that ends where the text ends would leave nothing to compute");
  CHECK(prefix_of({1, 2, 3, 4, 5, 6}, {12, 1234, 123456}, left_by_123456()) == Found{7, 4});
  CHECK(prefix_of({1, 2, 3, 4, 5, 6, 7}, {12, 1234, 123456}, left_by_123456()) ==
        Found{7, 4, 5});
}

TEST_CASE("prefix: the same hash is not yet the same text", "[task5][1pt]") {
  INFO("hint: compare the tokens: a hit with other tokens would serve another user's text");
  CHECK(prefix_of({8, 8, 9}, {12}, left_by_123456()).empty());
  CHECK(prefix_of({1, 2, 8, 8, 9}, {12, 1234}, left_by_123456()) == Found{7});
}

TEST_CASE("prefix: the same tokens after another beginning", "[task5][1pt]") {
  INFO("hint: compare the parent with the block found before; kNoBlock for the first");
  Cache cache = left_by_123456();
  cache[12] = {3, kNoBlock, {1, 2}};  // block 4 was computed after block 7
  CHECK(prefix_of({1, 2, 3, 4, 5}, {12, 1234}, cache) == Found{3});
  CHECK(prefix_of({3, 4, 5}, {1234}, left_by_123456()).empty());
}
