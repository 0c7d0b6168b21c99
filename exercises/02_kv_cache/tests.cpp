#include <exercise.hpp>

#include "testing.hpp"

using exercise::KvCache;
using testing::random_floats;
using testing::same;
using Floats = std::vector<float>;

namespace {

Floats joined(const Floats& a, const Floats& b) {
  Floats out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

/// One layer as task 4 gets it: 4 query heads on 2 key/value heads of width 6.
class SuppliedLayer final : public exercise::Layer {
 public:
  static constexpr std::size_t kHeads = 4, kKvHeads = 2, kDim = 6;

  std::size_t cached() const override { return k_.size() / (kKvHeads * kDim); }

  void rope(std::span<float> x, std::size_t n_heads, std::size_t first_position) override {
    for (std::size_t at = 0; at < x.size(); at += 2) {
      const double position = double(first_position + at / (n_heads * kDim));
      const double angle = position * std::pow(100.0, -double(at % kDim) / double(kDim));
      const double a = double(x[at]), b = double(x[at + 1]);
      x[at] = float(a * std::cos(angle) - b * std::sin(angle));
      x[at + 1] = float(a * std::sin(angle) + b * std::cos(angle));
    }
  }

  void append(std::span<const float> k, std::span<const float> v) override {
    k_.insert(k_.end(), k.begin(), k.end());
    v_.insert(v_.end(), v.begin(), v.end());
  }

  std::vector<float> attend(std::span<const float> q) override {
    const std::size_t n_tokens = q.size() / (kHeads * kDim), kv_len = cached();
    Floats out;
    for (std::size_t row = 0; row < n_tokens * kHeads; ++row) {
      // More queries than positions: a step forgot to append; let it see nothing.
      const std::size_t t = row / kHeads, kv_head = row % kHeads * kKvHeads / kHeads;
      const std::size_t visible = kv_len + t + 1 > n_tokens ? kv_len + t + 1 - n_tokens : 0;
      std::vector<double> weights;
      double sum = 0;
      for (std::size_t s = 0; s < visible; ++s) {
        double dot = 0;
        for (std::size_t d = 0; d < kDim; ++d)
          dot +=
              double(q[row * kDim + d]) * double(k_[(s * kKvHeads + kv_head) * kDim + d]);
        weights.push_back(std::exp(dot / std::sqrt(double(kDim))));
        sum += weights.back();
      }
      for (std::size_t d = 0; d < kDim; ++d) {
        double o = 0;
        for (std::size_t s = 0; s < visible; ++s)
          o += weights[s] / sum * double(v_[(s * kKvHeads + kv_head) * kDim + d]);
        out.push_back(float(o));
      }
    }
    return out;
  }

  const Floats& values() const { return v_; }

 private:
  Floats k_, v_;  // (S, K, Dh)
};

constexpr std::size_t kQueryRow = SuppliedLayer::kHeads * SuppliedLayer::kDim;
constexpr std::size_t kRow = SuppliedLayer::kKvHeads * SuppliedLayer::kDim;

Floats rows(const Floats& x, std::size_t row, std::size_t first, std::size_t count) {
  return {x.begin() + std::ptrdiff_t(first * row),
          x.begin() + std::ptrdiff_t((first + count) * row)};
}

/// What a pass over the whole text gives, without the student's code.
Floats full_pass(Floats q, Floats k, const Floats& v) {
  SuppliedLayer layer;
  layer.rope(q, SuppliedLayer::kHeads, 0);
  layer.rope(k, SuppliedLayer::kKvHeads, 0);
  layer.append(k, v);
  return layer.attend(q);
}

/// What decode_step gives when the text comes in pieces of the given lengths.
Floats in_steps(const Floats& q, const Floats& k, const Floats& v,
                const std::vector<std::size_t>& counts) {
  SuppliedLayer layer;
  Floats out;
  std::size_t first = 0;
  for (const std::size_t n : counts) {
    out =
        joined(out, exercise::decode_step(layer, rows(q, kQueryRow, first, n),
                                          rows(k, kRow, first, n), rows(v, kRow, first, n),
                                          SuppliedLayer::kHeads, SuppliedLayer::kKvHeads));
    first += n;
  }
  return out;
}

/// The rotated row that stands at `position` of a text.
Floats roped(Floats row, std::size_t n_heads, std::size_t head_dim, std::size_t position,
             double base = 10000) {
  exercise::rope(row, n_heads, head_dim, position, base);
  return row;
}

}  // namespace

// ---------------------------------------------------------------- task 1

TEST_CASE("append: a row for each token, one behind the other", "[task1][1pt]") {
  INFO(
      "hint: token number `length` goes to row `length`, and then the cache is longer by "
      "one");
  KvCache cache(4, 2, 2);
  cache.append(Floats{1, 2, 3, 4}, Floats{-1, -2, -3, -4});
  CHECK(cache.length() == 1);
  cache.append(Floats{5, 6, 7, 8}, Floats{-5, -6, -7, -8});
  CHECK(cache.length() == 2);
  CHECK(same(cache.keys(), Floats{1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(same(cache.values(), Floats{-1, -2, -3, -4, -5, -6, -7, -8}));
}

TEST_CASE("append: a prompt of several tokens at once", "[task1][1pt]") {
  INFO("hint: T is k.size() / (K * Dh); all T rows are stored and counted");
  const Floats k = random_floats(5 * 6, 1), v = random_floats(5 * 6, 2);
  const Floats k1 = random_floats(6, 3), v1 = random_floats(6, 4);
  KvCache cache(7, 2, 3);
  cache.append(k, v);
  CHECK(cache.length() == 5);
  cache.append(k1, v1);
  CHECK(cache.length() == 6);
  CHECK(same(cache.keys(), joined(k, k1)));
  CHECK(same(cache.values(), joined(v, v1)));
}

TEST_CASE("append: a full cache is an error, and stays as it was", "[task1][1pt]") {
  INFO(
      "hint: compare with the capacity before anything is written; the last row may be "
      "used");
  KvCache cache(3, 1, 1);
  CHECK_NOTHROW(cache.append(Floats{1, 2, 3}, Floats{4, 5, 6}));
  CHECK_THROWS_AS(cache.append(Floats{7}, Floats{7}), std::length_error);
  CHECK(same(cache.keys(), Floats{1, 2, 3}));
  KvCache small(3, 1, 1);
  small.append(Floats{1}, Floats{2});
  CHECK_THROWS_AS(small.append(Floats{7, 7, 7}, Floats{7, 7, 7}), std::length_error);
  CHECK(small.length() == 1);
}

TEST_CASE("key: the row of a position and a head", "[task1][1pt]") {
  INFO("hint: a position holds all K heads next to each other: (position * K + head) * Dh");
  KvCache cache(4, 3, 2);
  Floats k(3 * 3 * 2);
  std::iota(k.begin(), k.end(), 0.0f);
  cache.append(k, k);
  CHECK(same(cache.key(0, 2), Floats{4, 5}));
  CHECK(same(cache.key(2, 1), Floats{14, 15}));
  CHECK_THROWS_AS(cache.key(3, 0), std::out_of_range);
}

TEST_CASE("truncate: forgets the end, and the next token takes its place", "[task1][1pt]") {
  INFO("hint: `length` is how many positions stay, not how many go");
  KvCache cache(4, 1, 1);
  cache.append(Floats{1, 2, 3, 4}, Floats{1, 2, 3, 4});
  cache.truncate(1);
  CHECK(cache.length() == 1);
  cache.append(Floats{9}, Floats{8});
  CHECK(same(cache.keys(), Floats{1, 9}));
  CHECK(same(cache.values(), Floats{1, 8}));
  CHECK_THROWS_AS(cache.truncate(3), std::out_of_range);
  CHECK(cache.length() == 2);
}

// ---------------------------------------------------------------- task 2

TEST_CASE("rope: position 0 stays, position 1 turns by hand", "[task2][1pt]") {
  INFO("hint: (a, b) becomes (a cos - b sin, a sin + b cos); pair 0 turns by p radians");
  const double c = std::cos(1.0), s = std::sin(1.0);
  const double c2 = std::cos(0.1), s2 = std::sin(0.1);  // pair 1: 100^(-2/4) is 0.1
  Floats x{1, 2, 3, 4, 1, 2, 3, 4};                     // (T = 2, H = 1, Dh = 4)
  exercise::rope(x, 1, 4, 0, 100);
  CHECK(same(std::span(x).first(4), Floats{1, 2, 3, 4}, 1e-6));
  CHECK(same(std::span(x).last(4),
             std::vector{c - 2 * s, s + 2 * c, 3 * c2 - 4 * s2, 3 * s2 + 4 * c2}, 1e-5));
}

TEST_CASE("rope: all heads of a token turn alike", "[task2][1pt]") {
  INFO("hint: the angle depends on the token and the pair, and not on the head");
  const Floats head = random_floats(6, 1);
  const Floats turned = roped(head, 1, 6, 5);
  CHECK(same(roped(joined(joined(head, head), head), 3, 6, 5),
             joined(joined(turned, turned), turned), 1e-6));
}

TEST_CASE("rope: after a cache, the position is that in the whole text", "[task2][1pt]") {
  INFO("hint: token t of the batch stands at first_position + t");
  const Floats text = random_floats(7 * 8, 2);  // (T = 7, H = 2, Dh = 4)
  Floats whole = text;
  exercise::rope(whole, 2, 4, 0, 10000);
  CHECK(same(roped(rows(text, 8, 6, 1), 2, 4, 6), rows(whole, 8, 6, 1), 1e-6));
  CHECK(same(roped(rows(text, 8, 3, 4), 2, 4, 3), rows(whole, 8, 3, 4), 1e-6));
}

TEST_CASE("rope: far positions, against the definition", "[task2][1pt]") {
  INFO(
      "hint: compute the angle in double: p * base^(-2i / Dh), with i the number of the "
      "pair");
  const Floats x = random_floats(8, 3);
  std::vector<double> expected;
  for (std::size_t i = 0; i < 4; ++i) {
    const double angle = 1234 * std::pow(500000.0, -double(2 * i) / 8);
    const double a = double(x[2 * i]), b = double(x[2 * i + 1]);
    expected.push_back(a * std::cos(angle) - b * std::sin(angle));
    expected.push_back(a * std::sin(angle) + b * std::cos(angle));
  }
  CHECK(same(roped(x, 1, 8, 1234, 500000), expected, 1e-3));
}

// ---------------------------------------------------------------- task 3

TEST_CASE("memory: bytes for one token", "[task3][1pt]") {
  INFO(
      "hint: keys and values, in every layer, for every key/value head: 2 L K Dh bytes "
      "each");
  CHECK(exercise::kv_bytes_per_token({32, 32, 32, 128}, 2) == 524288);
  CHECK(exercise::kv_bytes_per_token({32, 32, 32, 128}, 4) == 1048576);
}

TEST_CASE("memory: GQA and MQA keep fewer heads", "[task3][1pt]") {
  INFO("hint: the cache has a row for each key/value head, and not for each query head");
  CHECK(exercise::kv_bytes_per_token({80, 64, 8, 128}, 2) == 327680);
  CHECK(exercise::kv_bytes_per_token({2, 8, 1, 16}, 1) == 64);
}

TEST_CASE("memory: the longest context that fits", "[task3][1pt]") {
  INFO("hint: what the weights leave, divided among the sequences, and rounded down");
  CHECK(exercise::longest_context(100, 1000, 300, 1) == 7);
  CHECK(exercise::longest_context(100, 1099, 300, 1) == 7);
  CHECK(exercise::longest_context(100, 1000, 300, 3) == 2);
  CHECK(exercise::longest_context(524288, 24ull << 30, 14ull << 30, 4) == 5120);
}

TEST_CASE("memory: weights that do not fit leave no context", "[task3][1pt]") {
  INFO("hint: an unsigned difference below zero is a very large number");
  CHECK(exercise::longest_context(100, 1000, 1001, 1) == 0);
  CHECK(exercise::longest_context(100, 1000, 1000, 1) == 0);
}

// ---------------------------------------------------------------- task 4

TEST_CASE("decode: a first token sees itself", "[task4][1pt]") {
  INFO("hint: append before attend: one token alone gets its own value back");
  const Floats q = random_floats(kQueryRow, 10);
  const Floats k = random_floats(kRow, 11), v = random_floats(kRow, 12);
  CHECK(same(in_steps(q, k, v, {1}), full_pass(q, k, v), 1e-5));
}

TEST_CASE("decode: values are stored as they came", "[task4][1pt]") {
  INFO("hint: RoPE changes what is compared, q and k; v is handed over as it is");
  const Floats q = random_floats(3 * kQueryRow, 13);
  const Floats k = random_floats(3 * kRow, 14), v = random_floats(3 * kRow, 15);
  SuppliedLayer layer;
  exercise::decode_step(layer, q, k, v, SuppliedLayer::kHeads, SuppliedLayer::kKvHeads);
  CHECK(same(layer.values(), v));
}

TEST_CASE("decode: the prompt in one step", "[task4][1pt]") {
  INFO("hint: rope for q and k, then append, then attend; v is not turned");
  const Floats q = random_floats(5 * kQueryRow, 1);
  const Floats k = random_floats(5 * kRow, 2), v = random_floats(5 * kRow, 3);
  CHECK(same(in_steps(q, k, v, {5}), full_pass(q, k, v), 1e-5));
}

TEST_CASE("decode: token after token is the same as all at once", "[task4][2pt]") {
  INFO("hint: ask for the position before append makes the cache longer");
  const Floats q = random_floats(6 * kQueryRow, 4);
  const Floats k = random_floats(6 * kRow, 5), v = random_floats(6 * kRow, 6);
  CHECK(same(in_steps(q, k, v, {3, 1, 1, 1}), full_pass(q, k, v), 1e-5));
}

TEST_CASE("decode: a text in pieces of any length", "[task4][1pt]") {
  INFO(
      "hint: nothing may depend on T being 1, or on the cache being empty when T is not 1");
  const Floats q = random_floats(7 * kQueryRow, 7);
  const Floats k = random_floats(7 * kRow, 8), v = random_floats(7 * kRow, 9);
  CHECK(same(in_steps(q, k, v, {1, 4, 2}), full_pass(q, k, v), 1e-5));
}
