#include "lab/kernels/machine.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/core/parallel.hpp"
#include "simd/table.hpp"

namespace lab::cpu {
namespace {

/// The highest of `passes` rates; work() returns how much it did.
template <class Work>
double best_rate(int passes, Work&& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int i = 0; i < passes; ++i) {
    const auto start = Clock::now();
    const double done = work();
    best =
        std::max(best, done / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

double read_bandwidth(std::size_t bytes) {
  const auto n = std::int64_t(std::max<std::size_t>(bytes, 1 << 16) / sizeof(float));
  const std::int64_t piece =
      std::clamp<std::int64_t>(n / (8 * n_threads()), 1 << 11, 1 << 18);
  Buffer buffer(std::size_t(n) * sizeof(float));
  float* data = buffer.as<float>();
  parallel_for(n, piece, [&](std::int64_t begin, std::int64_t end) {
    std::memset(data + begin, 0, std::size_t(end - begin) * sizeof(float));
  });
  std::atomic<float> sink = 0;  // so that the compiler cannot leave the reading out
  // A small buffer is read several times in a pass, so that a pass is long enough to time.
  const std::int64_t repeats = std::max<std::int64_t>(1, (std::int64_t{1} << 26) / n);
  return best_rate(5, [&] {
    for (std::int64_t r = 0; r < repeats; ++r)
      parallel_for(n, piece, [&](std::int64_t begin, std::int64_t end) {
        sink.store(kernels().read(data + begin, end - begin), std::memory_order_relaxed);
      });
    return double(repeats) * double(buffer.size());
  });
}

double flop_peak() {
  const int tasks =
      8 * n_threads();  // more than threads, so that a disturbed one does less
  return best_rate(10, [&] {
    std::vector<double> done(std::size_t(tasks), 0.0);
    parallel_for(tasks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float operands[3] = {0.5f, 0.25f, 0};
        done[std::size_t(i)] = double(kernels().multiply_add(1 << 16, operands));
      }
    });
    double total = 0;
    for (const double d : done) total += d;
    return total;
  });
}

}  // namespace lab::cpu
