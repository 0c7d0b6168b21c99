#include "bridge.hpp"
#include "device.hpp"
#include "lab/core/half.hpp"

using testing::Cost;
using testing::cost_of;
using testing::DeviceArray;
using testing::in_every_order;
using testing::random_floats;
using testing::same;
using testing::within_budget;
using Floats = std::vector<float>;
using Halves = std::vector<std::uint16_t>;  // the bits of numbers of 16 bits
using Slots = std::vector<int>;

namespace {

constexpr std::uint16_t kEmpty = 0x1234;  ///< what a cache holds before

Halves rounded(const Floats& x) {
  Halves out;
  for (const float v : x) out.push_back(lab::to_half(v).bits);
  return out;
}

Halves student_rounded(const Floats& x) {
  DeviceArray<float> in(x);
  DeviceArray<std::uint16_t> out(x.size());
  bridge::to_half(out.data(), in.data(), int(x.size()));
  return out.values();
}

/// A cache of `capacity` rows, and tokens to go into it.
struct Append {
  int capacity, width;
  Slots slots;
  bool own = false;
  Floats k = random_floats(slots.size() * std::size_t(width), 1);
  Floats v = random_floats(slots.size() * std::size_t(width), 2);

  Halves empty() const { return Halves(std::size_t(capacity * width), kEmpty); }

  Halves expected(const Floats& x) const {
    Halves cache = empty();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int slot = slots[i / std::size_t(width)];
      if (slot >= 0)
        cache[std::size_t(slot * width) + i % std::size_t(width)] = lab::to_half(x[i]).bits;
    }
    return cache;
  }

  /// Runs the student's kernel. @return the keys' and the values' cache behind one another
  Halves run(Cost* cost = nullptr) const {
    DeviceArray<std::uint16_t> cache_k(empty()), cache_v(empty());
    DeviceArray<float> new_k(k), new_v(v);
    DeviceArray<int> at(slots);
    const auto append = [&] {
      bridge::kv_append(cache_k.data(), cache_v.data(), new_k.data(), new_v.data(),
                        at.data(), int(slots.size()), width, own);
    };
    if (cost)
      *cost = cost_of(append);
    else
      append();
    Halves out = cache_k.values();
    const Halves values = cache_v.values();
    out.insert(out.end(), values.begin(), values.end());
    return out;
  }

  Halves expected() const {
    Halves out = expected(k);
    const Halves values = expected(v);
    out.insert(out.end(), values.begin(), values.end());
    return out;
  }
};

Floats product(const Floats& w, const Floats& x, int n_rows, Cost* cost = nullptr) {
  DeviceArray<float> weights(w), vector(x), y{std::size_t(n_rows)};
  const auto multiply = [&] {
    bridge::gemv(y.data(), weights.data(), vector.data(), n_rows, int(x.size()));
  };
  if (cost)
    *cost = cost_of(multiply);
  else
    multiply();
  return y.values();
}

Floats expected_product(const Floats& w, const Floats& x) {
  Floats y;
  for (std::size_t r = 0; r < w.size() / x.size(); ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < x.size(); ++c)
      sum += double(w[r * x.size() + c]) * double(x[c]);
    y.push_back(float(sum));
  }
  return y;
}

/// The cost of a product of random numbers.
Cost product_cost(int n_rows, int n_cols) {
  Cost cost;
  product(random_floats(std::size_t(n_rows * n_cols), 7),
          random_floats(std::size_t(n_cols), 8), n_rows, &cost);
  return cost;
}

}  // namespace

// ---------------------------------------------------------------- task 1

TEST_CASE("to_half: the nearest, ties to even", "[task1][1pt]") {
  INFO(
      "hint: 1 + 2^-11 lies between 1 and 1 + 2^-10: it goes to the even one, 1, and a "
      "little "
      "more goes up; round once, from the float itself");
  CHECK(same(student_rounded({1, 1 + 0x1p-11f, 1 + 0x1.8p-11f, 1 + 0x1.8p-10f}),
             Halves{0x3c00, 0x3c00, 0x3c01, 0x3c02}));
  // Rounded to one more bit first, these would become ties.
  CHECK(
      same(student_rounded({1 + 0x1.008p-11f, -1 - 0x1.008p-11f}), Halves{0x3c01, 0xbc01}));
  const Floats x = random_floats(100, 3);
  CHECK(same(student_rounded(x), rounded(x)));
}

TEST_CASE("to_half: the smallest and the largest", "[task1][1pt]") {
  INFO("hint: 16 bits reach from 2^-24 to 65504; from 65520 on the nearest is infinity");
  const Floats x{65504, 65519, 65520, -1e6f, 0x1p-24f, 0x1p-26f, -0x1.8p-24f, -0.0f};
  CHECK(same(student_rounded(x), rounded(x)));
  const Halves nan = student_rounded({std::numeric_limits<float>::quiet_NaN()});
  CHECK((nan[0] & 0x7c00) == 0x7c00);
  CHECK((nan[0] & 0x03ff) != 0);
}

// ---------------------------------------------------------------- task 2

TEST_CASE("append: each token into the row of its slot", "[task2][2pt]") {
  INFO(
      "hint: element i of the new keys belongs to token i / width, and goes to slots[i / "
      "width] * width + i % width, in both caches");
  in_every_order([] {
    for (const int width : {1, 7, 32, 100}) {
      const Append work{9, width, {4, 0, 8, 5}};
      CHECK(same(work.run(), work.expected()));
    }
  });
}

TEST_CASE("append: a token without a slot is not stored", "[task2][trace][1pt]") {
  INFO("hint: a negative slot means: store nothing");
  const Append work{6, 40, {-1, 2, -1, 0, -1}};
  CHECK(same(work.run(), work.expected()));
}

TEST_CASE("append: no race, nothing beside its row", "[task2][trace][1pt]") {
  INFO(
      "hint: threads beyond the last element have no work, and a row ends after width "
      "numbers");
  const Append work{3, 75, {2, 1, 0}};
  CHECK(same(work.run(), work.expected()));
}

TEST_CASE("append: at most 1.1 times the ideal sectors", "[task2][trace][2pt]") {
  INFO(
      "hint: ideal is that a warp reads 32 neighbouring numbers and writes 32 neighbouring "
      "halves: neighbouring threads, neighbouring elements");
  constexpr std::size_t n_tokens = 6, width = 128, n = n_tokens * width;
  Cost cost;
  Append{16, int(width), {3, 15, 7, 0, 9, 1}}.run(&cost);
  // Reading a slot costs a warp one sector, and k and v may each ask for it.
  CHECK(within_budget(cost, cost.sectors_loaded, 2 * n / 8 + 2 * n / 32));
  CHECK(within_budget(cost, cost.sectors_stored, 2 * n / 16));
  CHECK(cost.threads >= n / 8);
  CHECK(cost.threads <= 2 * (n + 1024));
}

TEST_CASE("append: with your own rounding", "[task2][1pt]") {
  INFO("hint: the kernel calls to_half once for each number: mend task 1");
  Append work{5, 33, {4, -1, 2}, true};
  work.k[0] = 1 + 0x1.08p-9f, work.v[7] = 65520;
  CHECK(same(work.run(), work.expected()));
}

// ---------------------------------------------------------------- task 3

TEST_CASE("gemv: an example worked out by hand", "[task3][1pt]") {
  INFO("hint: a row of 4 numbers is one float4: lane 0 has work, and 31 lanes add 0");
  CHECK(same(product({1, 2, 3, 4, 0, 0, 0, 1}, {1, 10, 100, 1000}, 2), Floats{4321, 1000}));
}

TEST_CASE("gemv: any number of rows and of groups of four", "[task3][2pt]") {
  INFO(
      "hint: a row may be shorter or longer than 32 float4: lane l takes the float4 "
      "numbers "
      "l, l + 32, l + 64, ...");
  in_every_order([] {
    for (const auto [n_rows, n_cols] :
         {std::pair{1, 4}, {3, 100}, {5, 128}, {33, 132}, {7, 1000}}) {
      const Floats w = random_floats(std::size_t(n_rows * n_cols), 4);
      const Floats x = random_floats(std::size_t(n_cols), 5);
      CHECK(same(product(w, x, n_rows), expected_product(w, x), 1e-4));
    }
  });
}

TEST_CASE("gemv: no race, nothing beside the arrays", "[task3][trace][1pt]") {
  INFO("hint: a warp whose row is not below n_rows leaves, and one lane writes y[row]");
  const Floats w = random_floats(5 * 36, 5), x = random_floats(36, 6);
  CHECK(same(product(w, x, 5), expected_product(w, x), 1e-4));
}

TEST_CASE("gemv: at most 1.1 times the ideal sectors", "[task3][trace][2pt]") {
  INFO(
      "hint: ideal is to read the matrix once, and the vector once for each row: the lanes "
      "of "
      "a warp read neighbouring float4, not a piece of the row each");
  constexpr std::uint64_t n_rows = 8, n_cols = 1024;
  const Cost cost = product_cost(n_rows, n_cols);
  CHECK(within_budget(cost, cost.sectors_loaded, 2 * n_rows * n_cols / 8));
  CHECK(within_budget(cost, cost.sectors_stored, n_rows));
}

TEST_CASE("gemv: loads of 16 bytes", "[task3][trace][1pt]") {
  INFO("hint: read through const float4*: a warp then asks for 512 bytes at a time");
  constexpr std::uint64_t n_rows = 8, n_cols = 1024;
  const Cost cost = product_cost(n_rows, n_cols);
  CHECK(within_budget(cost, cost.load_instructions, 2 * n_rows * n_cols / 128));
}

TEST_CASE("gemv: a warp for each row", "[task3][trace][1pt]") {
  INFO("hint: with w warps in a block, ceil(n_rows / w) blocks; 2 to 32 warps in each");
  for (const int n_rows : {1, 61}) {
    const Cost cost = product_cost(n_rows, 64);
    CHECK(cost.launches == 1);
    CHECK(cost.threads >= std::uint64_t(32 * n_rows));
    CHECK(cost.threads < std::uint64_t(32 * n_rows) + 1024);
    CHECK(cost.blocks < std::uint64_t(n_rows) + 1);
  }
  CHECK(product_cost(61, 64).blocks <= 31);
}
