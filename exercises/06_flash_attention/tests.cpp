#include <exercise.hpp>

#include <cstdlib>
#include <new>

#include "testing.hpp"

using exercise::kNothing;
using exercise::Partial;
using exercise::Shape;
using testing::random_floats;
using testing::same;
using Floats = std::vector<float>;

namespace {
std::size_t largest_allocation = 0;  // bytes, since it was last set to 0
}

// Every new of this program comes here, so that a test can see what a task allocates.
void* operator new(std::size_t bytes) {
  largest_allocation = std::max(largest_allocation, bytes);
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

/// Attention from its definition, in double, and the log of the sum of exp(score).
struct Exact {
  Exact(std::span<const float> scores, std::span<const float> values, std::size_t dim)
      : out(dim) {
    double largest = -INFINITY, sum = 0;
    for (const float s : scores) largest = std::max(largest, double(s));
    if (largest == -INFINITY) return;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double weight = std::exp(double(scores[i]) - largest);
      sum += weight;
      for (std::size_t d = 0; d < dim; ++d) out[d] += weight * double(values[i * dim + d]);
    }
    for (double& o : out) o /= sum;
    lse = largest + std::log(sum);
  }
  std::vector<double> out;
  double lse = -INFINITY;
};

/// The same lse, where both may be -infinity.
testing::Comparison same_lse(float actual, double expected, double tolerance = 1e-4) {
  if (std::isinf(expected) && double(actual) == expected) return {};
  return same(Floats{actual}, std::vector<double>{expected}, tolerance);
}

/// Partial results of the keys from `first` to `last`, made without the student's code.
Partial part_of(const Floats& scores, const Floats& values, std::size_t dim,
                std::size_t first, std::size_t last) {
  const std::span all_scores(scores), all_values(values);
  const Exact e(all_scores.subspan(first, last - first),
                all_values.subspan(first * dim, (last - first) * dim), dim);
  return {Floats(e.out.begin(), e.out.end()), float(e.lse)};
}

/// What the student's add_tile gives when the keys come in tiles of the given lengths.
Partial in_tiles(const Floats& scores, const Floats& values, std::size_t dim,
                 const std::vector<std::size_t>& counts) {
  exercise::State state(dim);
  std::size_t first = 0;
  for (const std::size_t n : counts) {
    exercise::add_tile(state, std::span(scores).subspan(first, n),
                       std::span(values).subspan(first * dim, n * dim));
    first += n;
  }
  Partial result{state.values, kNothing};  // as finish does it
  if (state.sum > 0)
    for (float& value : result.out) value /= state.sum;
  result.lse = state.largest + std::log(state.sum);
  return result;
}

/// Fast memory with room for 4 keys, that counts what is brought to it.
class SuppliedTiles final : public exercise::Tiles {
 public:
  SuppliedTiles(const Shape& shape, std::size_t n_block, Floats k, Floats v)
      : shape_(shape), k_(std::move(k)), v_(std::move(v)), seen_(n_block * shape.n_heads) {}

  std::size_t tile_size() const override { return 4; }
  std::span<const float> load(std::size_t kv_head, std::size_t first,
                              std::size_t count) override {
    if (count > 4) throw std::length_error("a tile holds 4 keys at most");
    if (kv_head >= shape_.n_kv_heads || first + count > shape_.n_keys)
      throw std::out_of_range("there are no such keys");
    keys_.clear(), values_.clear();
    for (std::size_t i = 0; i < count * shape_.head_dim; ++i) {
      const std::size_t key = first + i / shape_.head_dim, d = i % shape_.head_dim;
      const std::size_t at = (key * shape_.n_kv_heads + kv_head) * shape_.head_dim + d;
      keys_.push_back(k_[at]), values_.push_back(v_[at]);
    }
    ++loads;
    return keys_;
  }
  void add(std::size_t query, std::size_t head, std::span<const float> scores) override {
    if (head >= shape_.n_heads || scores.size() * shape_.head_dim != keys_.size())
      throw std::length_error("add: one score for each loaded key");
    auto& [all, values] = seen_.at(query * shape_.n_heads + head);
    all.insert(all.end(), scores.begin(), scores.end());
    values.insert(values.end(), values_.begin(), values_.end());
  }

  /// What the queries of the block have got, (n, H, Dh).
  std::vector<double> out() const {
    std::vector<double> all;
    for (const auto& [scores, values] : seen_) {
      const Exact e(scores, values, shape_.head_dim);
      all.insert(all.end(), e.out.begin(), e.out.end());
    }
    return all;
  }
  std::size_t loads = 0;

 private:
  Shape shape_;
  Floats k_, v_;  // (S, K, Dh)
  Floats keys_, values_;
  std::vector<std::pair<Floats, Floats>> seen_;
};

/// Runs task 3 for one block of queries.
struct Forward {
  Forward(const Shape& shape, std::size_t first, std::size_t n)
      : tiles(shape, n, k_of(shape), v_of(shape)) {
    const Floats q = random_floats(n * shape.n_heads * shape.head_dim, 1);
    exercise::flash_forward(tiles, q, first, shape);
    const Floats k = k_of(shape), v = v_of(shape);
    const std::size_t dim = shape.head_dim;
    for (std::size_t row = 0; row < n * shape.n_heads; ++row) {
      const std::size_t kv = row % shape.n_heads * shape.n_kv_heads / shape.n_heads;
      Floats scores, values;
      for (std::size_t s = 0; s < shape.n_keys; ++s) {
        if (s + shape.n_queries > shape.n_keys + first + row / shape.n_heads) break;
        double dot = 0;
        for (std::size_t d = 0; d < dim; ++d) {
          const std::size_t at = (s * shape.n_kv_heads + kv) * dim + d;
          dot += double(q[row * dim + d]) * double(k[at]);
          values.push_back(v[at]);
        }
        scores.push_back(float(dot / std::sqrt(double(dim))));
      }
      const Exact e(scores, values, dim);
      expected.insert(expected.end(), e.out.begin(), e.out.end());
    }
  }
  static Floats k_of(const Shape& s) {
    return random_floats(s.n_keys * s.n_kv_heads * s.head_dim, 2);
  }
  static Floats v_of(const Shape& s) {
    return random_floats(s.n_keys * s.n_kv_heads * s.head_dim, 3);
  }
  testing::Comparison agrees() const { return same(tiles.out(), expected, 1e-5); }
  SuppliedTiles tiles;
  std::vector<double> expected;
};

/// One query for task 5: its operands, and its loss, the product of dout and the output.
struct Row {
  explicit Row(std::size_t n_keys, float size = 1)
      : q(random_floats(3, 4)),
        k(random_floats(n_keys * 3, 5)),
        v(random_floats(n_keys * 3, 6)),
        dout(random_floats(3, 7)) {
    for (float& x : q) x *= size;
  }
  /// Attention with one number of q, k or v changed by `step`: the loss, in double.
  double loss(const float* changed, double step) const {
    const auto at = [&](const float& x) { return double(x) + (&x == changed ? step : 0); };
    std::vector<double> scores;
    double largest = -INFINITY, sum = 0, result = 0;
    for (std::size_t s = 0; s < k.size() / 3; ++s) {
      double dot = 0;
      for (std::size_t d = 0; d < 3; ++d) dot += at(q[d]) * at(k[s * 3 + d]);
      scores.push_back(dot * double(scale));
      largest = std::max(largest, scores.back());
    }
    for (double& s : scores) sum += s = std::exp(s - largest);
    for (std::size_t i = 0; i < v.size(); ++i)
      result += scores[i / 3] / sum * at(v[i]) * double(dout[i % 3]);
    return result;
  }
  /// The derivatives by all numbers of an operand, from differences.
  std::vector<double> differences(const Floats& operand) const {
    std::vector<double> out;
    for (const float& x : operand) out.push_back((loss(&x, 1e-5) - loss(&x, -1e-5)) / 2e-5);
    return out;
  }
  Partial forward() const {
    Floats scores;
    for (std::size_t s = 0; s < k.size() / 3; ++s) {
      double dot = 0;
      for (std::size_t d = 0; d < 3; ++d) dot += double(q[d]) * double(k[s * 3 + d]);
      scores.push_back(float(dot * double(scale)));
    }
    return part_of(scores, v, 3, 0, scores.size());
  }
  void backward() { exercise::backward_row(dq, dk, dv, dout, q, k, v, forward(), scale); }
  float scale = 0.7f;
  Floats q, k, v, dout;
  Floats dq = Floats(3), dk = Floats(k.size()), dv = Floats(k.size());
};

}  // namespace

// ---------------------------------------------------------------- task 1

TEST_CASE("softmax: one tile", "[task1][1pt]") {
  INFO("hint: weight = exp(score - largest); add it to the sum, weight * value to values");
  const Floats scores{1, 3, 2}, values = random_floats(3 * 2, 1);
  const Exact e(scores, values, 2);
  CHECK(same(in_tiles(scores, values, 2, {3}).out, e.out, 1e-5));
}

TEST_CASE("softmax: a larger score in a later tile", "[task1][2pt]") {
  INFO("hint: multiply the old sum and the old values by exp(old largest - new largest)");
  const Floats scores{1, -2, 0.5f, 4, 3, 9}, values = random_floats(6 * 3, 2);
  const Exact e(scores, values, 3);
  const Partial p = in_tiles(scores, values, 3, {2, 3, 1});
  CHECK(same(p.out, e.out, 1e-5));
  CHECK(same_lse(p.lse, e.lse));
}

TEST_CASE("softmax: a smaller score in a later tile", "[task1][1pt]") {
  INFO("hint: the largest is that of all keys so far, and not of the newest tile");
  const Floats scores{5, 4, 1, -3}, values = random_floats(4 * 3, 3);
  const Exact e(scores, values, 3);
  const Partial p = in_tiles(scores, values, 3, {1, 1, 2});
  CHECK(same(p.out, e.out, 1e-5));
  CHECK(same_lse(p.lse, e.lse));
}

TEST_CASE("softmax: large scores of either sign", "[task1][1pt]") {
  INFO("hint: exp(10000) is infinite; subtract the largest; begin with -infinity, not 0");
  const Floats values = random_floats(4 * 2, 4);
  for (const float sign : {1.0f, -1.0f}) {
    const Floats scores{sign * 9000, sign * 9001, sign * 10000, sign * 9999.5f};
    const Exact e(scores, values, 2);
    const Partial p = in_tiles(scores, values, 2, {2, 2});
    CHECK(same(p.out, e.out, 1e-5));
    CHECK(same_lse(p.lse, e.lse, 2e-3));
  }
}

TEST_CASE("softmax: keys that are not seen", "[task1][1pt]") {
  INFO(
      "hint: -infinity minus -infinity is NaN: where the largest is -infinity, do nothing");
  const Floats scores{kNothing, kNothing, 2, kNothing, kNothing, 1};
  const Floats values = random_floats(6 * 2, 5);
  const Exact e(scores, values, 2);
  const Partial p = in_tiles(scores, values, 2, {2, 2, 1, 1});
  CHECK(same(p.out, e.out, 1e-5));
  CHECK(same_lse(p.lse, e.lse));
}

TEST_CASE("finish: the values divided by the sum, and the lse", "[task1][1pt]") {
  INFO("hint: lse = largest + log(sum)");
  exercise::State state(2);
  state.largest = 3, state.sum = 2, state.values = {4, -6};
  const Partial p = exercise::finish(state);
  CHECK(same(p.out, Floats{2, -3}, 1e-6));
  CHECK(same_lse(p.lse, 3 + std::log(2.0)));
}

TEST_CASE("finish: a query that saw no key", "[task1][1pt]") {
  INFO("hint: 0 / 0 is NaN: the output is 0 and the lse -infinity");
  const Partial p = exercise::finish(exercise::State(3));
  CHECK(same(p.out, Floats{0, 0, 0}));
  CHECK(p.lse == kNothing);
}

// ---------------------------------------------------------------- task 2

TEST_CASE("merge: two parts are the whole", "[task2][2pt]") {
  INFO("hint: each part counts with exp(its lse - the larger lse), divided by their sum");
  const Floats scores{1, -2, 0.5f, 4, 3}, values = random_floats(5 * 3, 6);
  const Exact e(scores, values, 3);
  const Partial a = part_of(scores, values, 3, 0, 2), b = part_of(scores, values, 3, 2, 5);
  for (const Partial& p : {exercise::merge(a, b), exercise::merge(b, a)}) {
    CHECK(same(p.out, e.out, 1e-5));
    CHECK(same_lse(p.lse, e.lse));
  }
}

TEST_CASE("merge: large and distant parts", "[task2][1pt]") {
  INFO("hint: subtract the larger lse before exp, or it is infinite, or 0 for both");
  const Floats scores{5000, 5001, -3000, -3000, -3001}, values = random_floats(5 * 2, 7);
  const Partial a = part_of(scores, values, 2, 0, 1), b = part_of(scores, values, 2, 1, 2);
  const Partial c = part_of(scores, values, 2, 2, 4), d = part_of(scores, values, 2, 4, 5);
  const Exact high(Floats{5000, 5001}, Floats(values.begin(), values.begin() + 4), 2);
  const Exact low(Floats{-3000, -3000, -3001}, Floats(values.begin() + 4, values.end()), 2);
  CHECK(same(exercise::merge(a, b).out, high.out, 1e-3));
  CHECK(same(exercise::merge(c, d).out, low.out, 1e-3));
  CHECK(same(exercise::merge(a, c).out, a.out, 1e-6));
}

TEST_CASE("merge: a part without keys changes nothing", "[task2][1pt]") {
  INFO(
      "hint: an lse of -infinity: the result is the other part; its out may hold anything");
  const Partial some{{1, -2}, 0.5f};
  const Partial none{Floats(2, std::numeric_limits<float>::quiet_NaN()), kNothing};
  for (const Partial& p : {exercise::merge(some, none), exercise::merge(none, some)}) {
    CHECK(same(p.out, some.out));
    CHECK(p.lse == some.lse);
  }
  const Partial empty{{0, 0}, kNothing};
  const Partial both = exercise::merge(empty, empty);
  CHECK(both.lse == kNothing);
  CHECK(same(both.out, Floats{0, 0}));
}

// ---------------------------------------------------------------- task 3

TEST_CASE("causal: the last query sees all keys", "[task3][1pt]") {
  INFO("hint: query t sees S - T + t + 1 keys");
  CHECK(exercise::visible_keys(0, 4, 4) == 1);
  CHECK(exercise::visible_keys(3, 4, 4) == 4);
  CHECK(exercise::visible_keys(0, 1, 9) == 9);
  CHECK(exercise::visible_keys(1, 3, 8) == 7);
}

TEST_CASE("causal: a query before the first key sees none", "[task3][1pt]") {
  INFO("hint: with more queries than keys the difference would be below zero");
  CHECK(exercise::visible_keys(0, 5, 3) == 0);
  CHECK(exercise::visible_keys(1, 5, 3) == 0);
  CHECK(exercise::visible_keys(2, 5, 3) == 1);
}

TEST_CASE("tiles: one query, one key", "[task3][1pt]") {
  INFO("hint: load the tile, one score for each of its keys, and add");
  CHECK(Forward({1, 1, 1, 1, 5}, 0, 1).agrees());
}

TEST_CASE("tiles: a whole text", "[task3][1pt]") {
  INFO("hint: -infinity for the keys that a query does not see; scale by 1 / sqrt(Dh)");
  CHECK(Forward({8, 8, 1, 1, 5}, 0, 8).agrees());
}

TEST_CASE("tiles: the last tile is not full", "[task3][1pt]") {
  INFO("hint: load what is left, and not a whole tile");
  CHECK(Forward({11, 11, 1, 1, 5}, 0, 11).agrees());
}

TEST_CASE("tiles: new queries behind a cache", "[task3][1pt]") {
  INFO("hint: query t of T sees S - T + t + 1 keys: count from the last key back");
  CHECK(Forward({2, 9, 1, 1, 5}, 0, 2).agrees());
  CHECK(Forward({6, 9, 1, 1, 5}, 3, 2).agrees());
}

TEST_CASE("tiles: several query heads read one key/value head", "[task3][1pt]") {
  INFO("hint: query head h reads key/value head h / (H / K)");
  CHECK(Forward({6, 6, 4, 2, 3}, 0, 6).agrees());
  CHECK(Forward({6, 6, 6, 2, 3}, 0, 6).agrees());
}

TEST_CASE("tiles: each is loaded once, and only if somebody sees it", "[task3][2pt]") {
  INFO("hint: load outside the loops over queries and heads; stop at the last query's end");
  CHECK(Forward({16, 16, 4, 2, 3}, 12, 4).tiles.loads == 2 * 4);
  CHECK(Forward({16, 16, 4, 2, 3}, 4, 4).tiles.loads == 2 * 2);
  CHECK(Forward({16, 16, 1, 1, 3}, 0, 5).tiles.loads == 2);
}

TEST_CASE("tiles: scores of one tile at a time", "[task3][1pt]") {
  INFO("hint: an array of tile_size() scores is enough, whatever the length of the text");
  const Shape shape{4096, 4096, 1, 1, 1};
  SuppliedTiles tiles(shape, 1, Floats(4096), Floats(4096));
  class Sink final : public exercise::Tiles {  // keeps nothing
   public:
    std::size_t tile_size() const override { return 4; }
    std::span<const float> load(std::size_t, std::size_t, std::size_t n) override {
      return std::span(keys_).first(n);
    }
    void add(std::size_t, std::size_t, std::span<const float> s) override {
      total += s.size();
    }
    std::size_t total = 0;

   private:
    Floats keys_ = Floats(4);
  } sink;
  const Floats q{1};
  largest_allocation = 0;
  exercise::flash_forward(sink, q, 4095, shape);
  CHECK(largest_allocation <= 1024);
  CHECK(sink.total == 4096);
}

// ---------------------------------------------------------------- task 4

namespace {

/// Runs task 4 and takes note of the parts that it asked for.
struct Split {
  Split(std::size_t n_keys, std::size_t n_parts)
      : scores(random_floats(n_keys, 8)), values(random_floats(n_keys * 2, 9)) {
    const auto attend = [&](std::size_t first, std::size_t count) {
      if (count == 0 || first + count > n_keys) throw std::out_of_range("no such keys");
      counts.push_back(count);
      return part_of(scores, values, 2, first, first + count);
    };
    const auto merge = [](const Partial& a, const Partial& b) {
      if (a.lse == kNothing) return b;
      const float m = std::max(a.lse, b.lse);
      const float x = std::exp(a.lse - m), y = std::exp(b.lse - m);
      Partial result{a.out, m + std::log(x + y)};
      for (std::size_t d = 0; d < 2; ++d)
        result.out[d] = (x * a.out[d] + y * b.out[d]) / (x + y);
      return result;
    };
    result = exercise::decode_split(n_keys, n_parts, attend, merge);
  }
  Floats scores, values;
  std::vector<std::size_t> counts;
  Partial result;
};

}  // namespace

TEST_CASE("split: every key once", "[task4][1pt]") {
  INFO("hint: part i has the keys from i * S / n to (i + 1) * S / n");
  for (const std::size_t n : {1, 2, 3, 4}) {
    const Split split(13, n);
    CHECK(split.counts.size() == n);
    CHECK(same(split.result.out, Exact(split.scores, split.values, 2).out, 1e-5));
  }
}

TEST_CASE("split: parts of nearly the same length", "[task4][1pt]") {
  INFO("hint: the slowest part decides: no part has two keys more than another");
  const Split split(11, 4);
  REQUIRE(split.counts.size() == 4);
  const auto [least, most] = std::minmax_element(split.counts.begin(), split.counts.end());
  CHECK(*most - *least <= 1);
}

TEST_CASE("split: more parts than keys", "[task4][1pt]") {
  INFO("hint: leave a part without keys out");
  const Split split(3, 8);
  CHECK(split.counts == std::vector<std::size_t>{1, 1, 1});
  CHECK(same(split.result.out, Exact(split.scores, split.values, 2).out, 1e-5));
  CHECK(Split(0, 2).result.lse == kNothing);
}

// ---------------------------------------------------------------- task 5

TEST_CASE("backward: by the values", "[task5][1pt]") {
  INFO("hint: the weight is exp(scale * q.k - lse); dv = weight * dout");
  Row row(5);
  row.backward();
  CHECK(same(row.dv, row.differences(row.v), 1e-4));
}

TEST_CASE("backward: by the query", "[task5][2pt]") {
  INFO("hint: dscore = weight * (dout.v - dout.out); dq = scale * sum of dscore * k");
  Row row(5);
  row.dq = {7, 7, 7};  // is written, not added to
  row.backward();
  CHECK(same(row.dq, row.differences(row.q), 1e-4));
}

TEST_CASE("backward: by the keys", "[task5][1pt]") {
  INFO("hint: dk of a key = scale * its dscore * q");
  Row row(5);
  row.backward();
  CHECK(same(row.dk, row.differences(row.k), 1e-4));
}

TEST_CASE("backward: keys and values collect from all queries", "[task5][1pt]") {
  INFO("hint: several queries see the same key: add to dk and dv, do not overwrite them");
  Row once(4), twice(4);
  once.backward();
  twice.backward();
  twice.backward();
  for (Floats* x : {&once.dk, &once.dv})
    for (float& y : *x) y *= 2;
  CHECK(same(twice.dk, once.dk, 1e-5));
  CHECK(same(twice.dv, once.dv, 1e-5));
}

TEST_CASE("backward: large scores", "[task5][1pt]") {
  INFO("hint: subtract the lse before exp: exp(score) / exp(lse) is NaN");
  Row row(4, 1000);
  row.backward();
  CHECK(same(row.dv, row.differences(row.v), 0.01));
}

TEST_CASE("backward: no array of the text's length", "[task5][1pt]") {
  INFO("hint: everything of a key is known once its weight is: finish it before the next");
  Row row(4096);
  const Partial state = row.forward();
  largest_allocation = 0;
  exercise::backward_row(row.dq, row.dk, row.dv, row.dout, row.q, row.k, row.v, state,
                         row.scale);
  CHECK(largest_allocation <= 1024);
  CHECK(std::isfinite(row.dq[0]));
}
