// Flash attention beside the naive form, taking turns so that a noisy machine disturbs
// both.
//     bench_flash_attention [threads] [instruction set]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/core/rng.hpp"
#include "lab/kernels/flash_attention.hpp"
#include "lab/kernels/machine.hpp"

using namespace lab;

namespace {

constexpr std::int64_t kHeadDim = 64;

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + std::ssize(x) / 2, x.end());
  return x[x.size() / 2];
}

void measure(std::int64_t n, AttentionMask mask) {
  Rng rng(1);
  const auto random = [&] {
    std::vector<float> x(std::size_t(n * kHeadDim));
    for (float& y : x) y = float(rng.normal());
    return x;
  };
  const std::vector<float> q = random(), k = random(), v = random();
  std::vector<float> out(q.size()), lse(static_cast<std::size_t>(n));
  const std::vector<std::int32_t> starts{0, std::int32_t(n)};
  const RaggedBatch<Space::host> batch{{starts.data(), {2}}, {starts.data(), {2}}, n};
  const HostView<const float, 3> views[] = {{q.data(), {n, 1, kHeadDim}},
                                            {k.data(), {n, 1, kHeadDim}},
                                            {v.data(), {n, 1, kHeadDim}}};
  std::vector<double> flash, naive, ratio;
  std::int64_t bytes = 0;
  const int runs = int(std::clamp<std::int64_t>((1 << 24) / (n * n), 7, 301));
  for (int i = 0; i < runs; ++i) {
    flash.push_back(seconds([&] {
      cpu::flash_attention<float>({out.data(), {n, 1, kHeadDim}}, {lse.data(), {n, 1}},
                                  views[0], views[1], views[2], batch, 0.125f, mask);
    }));
    naive.push_back(seconds([&] {
      bytes = cpu::naive_attention({out.data(), {n, 1, kHeadDim}}, views[0], views[1],
                                   views[2], batch, 0.125f, mask);
    }));
    ratio.push_back(naive.back() / flash.back());
  }
  fmt::print(
      "{:6} N={:5} flash {:9.1f} us  naive {:9.1f} us  naive / flash {:5.2f}  matrix "
      "{:8.2f} MiB\n",
      mask == AttentionMask::causal ? "causal" : "full", n, median(flash) * 1e6,
      median(naive) * 1e6, median(ratio), double(bytes) / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  return guarded_main("bench_flash_attention", [&] {
    set_n_threads(argc > 1 ? std::atoi(argv[1]) : 1);
    if (argc > 2) cpu::set_instruction_set(argv[2]);
    fmt::print("{}, {} threads, head_dim {}\n", cpu::instruction_set(), n_threads(),
               kHeadDim);
    for (const AttentionMask mask : {AttentionMask::causal, AttentionMask::none})
      for (const std::int64_t n : {16, 64, 128, 256, 512, 1024, 2048, 4096})
        measure(n, mask);
    return 0;
  });
}
