#include "bridge.hpp"
#include "device.hpp"

using testing::Cost;
using testing::cost_of;
using testing::DeviceArray;
using testing::in_every_order;
using testing::random_floats;
using testing::same;
using testing::within_budget;
using Floats = std::vector<float>;

namespace {

constexpr float kEps = 1e-5f;

Floats sum_of(const Floats& a, const Floats& b) {
  Floats out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(a[i] + b[i]);
  return out;
}

/// What `add` gives for arrays of n numbers.
Floats added(const Floats& a, const Floats& b) {
  DeviceArray<float> x(a), y(b), out(a.size());
  bridge::add(out.data(), x.data(), y.data(), std::int64_t(a.size()));
  return out.values();
}

/// For each element the sum over its group of `group` neighbours.
Floats sums_of_groups(const Floats& in, std::size_t group) {
  Floats out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < group; ++j) sum += double(in[i / group * group + j]);
    out.push_back(float(sum));
  }
  return out;
}

Floats warp_sums(const Floats& in, int n_blocks, int n_threads) {
  DeviceArray<float> x(in), out(in.size());
  bridge::warp_sum(out.data(), x.data(), n_blocks, n_threads);
  return out.values();
}

Floats block_sums(const Floats& in, int n_blocks, int n_threads, bool own = false) {
  DeviceArray<float> x(in), out(in.size());
  bridge::block_sum(out.data(), x.data(), n_blocks, n_threads, own);
  return out.values();
}

Floats normed(const Floats& x, const Floats& weight, int n_rows, float eps = kEps,
              bool own = false) {
  DeviceArray<float> in(x), w(weight), out(x.size());
  bridge::rms_norm(out.data(), in.data(), w.data(), n_rows, int(weight.size()), eps, own);
  return out.values();
}

Floats expected_norm(const Floats& x, const Floats& weight, float eps = kEps) {
  const std::size_t width = weight.size();
  Floats out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double squares = 0;
    for (std::size_t j = 0; j < width; ++j) {
      const double v = double(x[i / width * width + j]);
      squares += v * v;
    }
    const double rms = std::sqrt(squares / double(width) + double(eps));
    out.push_back(float(double(x[i]) / rms * double(weight[i % width])));
  }
  return out;
}

}  // namespace

// ---------------------------------------------------------------- task 1

TEST_CASE("add: any number of elements", "[task1][1pt]") {
  INFO(
      "hint: the last block has threads beyond n: each one asks first whether it has work");
  for (const std::size_t n : {1, 31, 257, 1000, 4096}) {
    const Floats a = random_floats(n, 1), b = random_floats(n, 2);
    CHECK(same(added(a, b), sum_of(a, b)));
  }
}

TEST_CASE("add: touches nothing beside its arrays", "[task1][trace][1pt]") {
  INFO("hint: thread i = blockIdx.x * blockDim.x + threadIdx.x works only where i < n");
  const Floats a = random_floats(333, 1), b = random_floats(333, 2);
  CHECK(same(added(a, b), sum_of(a, b)));
  DeviceArray<float> x(a), y(b);
  bridge::add(x.data(), x.data(), y.data(), 333);
  CHECK(same(x.values(), sum_of(a, b)));
}

TEST_CASE("add: memory in whole sectors", "[task1][trace][1pt]") {
  INFO(
      "hint: neighbouring threads take neighbouring elements: the 32 floats of a warp are "
      "4 "
      "sectors");
  constexpr std::size_t n = 4096;
  DeviceArray<float> a(random_floats(n, 1)), b(random_floats(n, 2)), out(n);
  const Cost cost = cost_of([&] { bridge::add(out.data(), a.data(), b.data(), n); });
  CHECK(within_budget(cost, cost.sectors_loaded, 2 * n / 8));
  CHECK(within_budget(cost, cost.sectors_stored, n / 8));
  CHECK(cost.threads <= n + 1023);
}

// ---------------------------------------------------------------- task 2

TEST_CASE("warp_sum: every lane gets the sum of all 32", "[task2][1pt]") {
  INFO(
      "hint: with __shfl_xor_sync every lane ends with the sum; with __shfl_down_sync only "
      "lane 0 does");
  in_every_order([] {
    Floats ones(32, 0.0f);
    ones[31] = 1;
    CHECK(same(warp_sums(ones, 1, 32), Floats(32, 1.0f)));
    const Floats in = random_floats(32, 1);
    CHECK(same(warp_sums(in, 1, 32), sums_of_groups(in, 32), 1e-5));
  });
}

TEST_CASE("warp_sum: each warp for itself", "[task2][1pt]") {
  INFO("hint: five steps, offsets 16, 8, 4, 2, 1, all 32 lanes in the mask");
  in_every_order([] {
    const Floats in = random_floats(2 * 160, 3);
    CHECK(same(warp_sums(in, 2, 160), sums_of_groups(in, 32), 1e-5));
  });
}

TEST_CASE("warp_sum: in registers, without shared memory", "[task2][trace][1pt]") {
  INFO("hint: a shuffle hands a register to another lane; no __shared__ array is needed");
  DeviceArray<float> in(random_floats(64, 4)), out(64);
  const Cost cost = cost_of([&] { bridge::warp_sum(out.data(), in.data(), 1, 64); });
  CHECK(cost.wavefronts == 0);
  CHECK(cost.sectors_loaded == 8);
  CHECK(same(out.values(), sums_of_groups(in.values(), 32), 1e-5));
}

// ---------------------------------------------------------------- task 3

TEST_CASE("block_sum: 1 to 32 warps, every thread gets the sum", "[task3][2pt]") {
  INFO(
      "hint: the last step adds as many partial sums as there are warps, and 0 for the "
      "lanes "
      "beyond them");
  in_every_order([] {
    for (const int n_threads : {32, 96, 256, 1024}) {
      const Floats in = random_floats(std::size_t(2 * n_threads), 5);
      CHECK(same(block_sums(in, 2, n_threads), sums_of_groups(in, std::size_t(n_threads)),
                 1e-4));
    }
  });
}

TEST_CASE("block_sum: no race between its steps", "[task3][trace][1pt]") {
  INFO("hint: a warp may read a partial sum only after a barrier behind all the writes");
  const Floats in = random_floats(160, 6);
  CHECK(same(block_sums(in, 1, 160), sums_of_groups(in, 160), 1e-4));
}

TEST_CASE("block_sum: two calls, one right after the other", "[task3][trace][1pt]") {
  INFO(
      "hint: a fast warp starts the second call while a slow one still reads the first "
      "call's partial sums: they need a barrier between them too");
  const Floats in = random_floats(2 * 96, 7);
  DeviceArray<float> x(in), out(96);
  bridge::block_sum_twice(out.data(), x.data(), 96);
  const Floats sums = sums_of_groups(in, 96);
  CHECK(same(out.values(), Floats(96, sums[0] + 1000 * sums[96]), 2e-2));
}

TEST_CASE("block_sum: few turns of shared memory", "[task3][trace][1pt]") {
  INFO(
      "hint: one write for each warp, one read of all partial sums for each warp; lanes "
      "that "
      "read different elements of one bank wait for each other");
  DeviceArray<float> in(random_floats(256, 8)), out(256);
  const Cost cost = cost_of([&] { bridge::block_sum(out.data(), in.data(), 1, 256); });
  CHECK(cost.wavefronts <= cost.wavefronts_without_conflicts);
  CHECK(cost.wavefronts >= 8);
  CHECK(cost.wavefronts <= 4 * 8);
}

// ---------------------------------------------------------------- task 4

TEST_CASE("rms_norm: a row worked out by hand", "[task4][1pt]") {
  INFO(
      "hint: for 3, 4 the mean of the squares is 12.5; eps is added to it, under the root");
  const Floats x{3, 4, 0, 0}, weight{1, 2};
  const float rms = std::sqrt(12.5f + 0.5f);
  CHECK(same(normed(x, weight, 2, 0.5f), Floats{3 / rms, 8 / rms, 0, 0}, 1e-5));
}

TEST_CASE("rms_norm: rows of any width, in every order", "[task4][2pt]") {
  INFO(
      "hint: a row may be shorter than a warp or longer than a block: thread t takes the "
      "elements t, t + blockDim.x, t + 2 blockDim.x, ...");
  in_every_order([] {
    for (const std::size_t width : {1, 31, 33, 100, 1000, 2500}) {
      Floats x = random_floats(3 * width, 9);
      if (width == 100)
        for (float& v : x) v *= 1e-3f;  // as small as the root of eps
      const Floats weight = random_floats(width, 10);
      CHECK(same(normed(x, weight, 3), expected_norm(x, weight), 1e-4));
    }
  });
}

TEST_CASE("rms_norm: no race, nothing beside the arrays", "[task4][trace][1pt]") {
  INFO(
      "hint: out may be x: an element is read for the last time by the thread that then "
      "writes it, and every thread of a block calls block_sum");
  constexpr std::size_t width = 333;
  const Floats x = random_floats(3 * width, 11), weight = random_floats(width, 12);
  CHECK(same(normed(x, weight, 3), expected_norm(x, weight), 1e-4));
  DeviceArray<float> in_place(x), w(weight);
  bridge::rms_norm(in_place.data(), in_place.data(), w.data(), 3, int(width), kEps);
  CHECK(same(in_place.values(), expected_norm(x, weight), 1e-4));
}

TEST_CASE("rms_norm: at most 1.1 times the ideal sectors", "[task4][trace][1pt]") {
  INFO(
      "hint: ideal is to read the row twice and the weight once, neighbouring threads at "
      "neighbouring elements");
  constexpr std::size_t n_rows = 5, width = 1024, n = n_rows * width;
  DeviceArray<float> x(random_floats(n, 13)), w(random_floats(width, 14)), out(n);
  const Cost cost = cost_of(
      [&] { bridge::rms_norm(out.data(), x.data(), w.data(), n_rows, width, kEps); });
  CHECK(within_budget(cost, cost.sectors_loaded, 3 * n / 8));
  CHECK(within_budget(cost, cost.sectors_stored, n / 8));
}

TEST_CASE("rms_norm: a block for each row, warps for its elements", "[task4][trace][1pt]") {
  INFO(
      "hint: the grid has n_rows blocks; a row of 48 has two pieces of 32 elements, so two "
      "warps; a row of 4096 keeps at least four busy");
  const auto shape = [](int n_rows, int width) {
    DeviceArray<float> x(random_floats(std::size_t(n_rows * width), 15));
    DeviceArray<float> w(random_floats(std::size_t(width), 16)), out(x.values().size());
    return cost_of(
        [&] { bridge::rms_norm(out.data(), x.data(), w.data(), n_rows, width, kEps); });
  };
  const Cost narrow = shape(7, 48), wide = shape(2, 4096);
  CHECK(narrow.launches == 1);
  CHECK(narrow.blocks == 7);
  CHECK(narrow.threads <= 7 * 64);
  CHECK(narrow.threads % (7 * 32) == 0);
  CHECK(wide.blocks == 2);
  CHECK(wide.threads >= 2 * 128);
}

TEST_CASE("all together: your norm on your sums", "[task4][trace][1pt]") {
  INFO("hint: rms_norm, block_sum and warp_sum are your own here: mend the earlier tasks");
  const Floats in = random_floats(128, 17);
  CHECK(same(block_sums(in, 1, 128, true), sums_of_groups(in, 128), 1e-4));
  const Floats x = random_floats(2 * 700, 18), weight = random_floats(700, 19);
  CHECK(same(normed(x, weight, 2, kEps, true), expected_norm(x, weight), 1e-4));
}
