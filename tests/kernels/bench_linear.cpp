// Speed of the linear layer for each format: decoding (T = 1, weights larger than the
// caches) as a share of the memory bandwidth, and T = 8, 64, 512 as a share of the peak of
// arithmetic.
//     bench_linear [threads] [instruction set] [f32|int8] [format]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kernels/linear.hpp"
#include "lab/kernels/machine.hpp"

using namespace lab;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The best of `rounds`: a busy machine only makes a run slower.
template <class Body>
double best_seconds(int rounds, Body&& body) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = now();
    body();
    best = std::min(best, now() - start);
  }
  return best;
}

constexpr std::int64_t kRows = 4096, kCols = 2048;

void measure(DType dtype, Activations activations, double bandwidth, double peak) {
  // Zero blocks: speed does not depend on values, as long as none is subnormal.
  const std::vector<std::byte> file(std::size_t(kRows * row_bytes(dtype, kCols)));
  const HostWeightView weights{file.data(), dtype, kRows, kCols};
  std::vector<cpu::Linear> layers;
  std::size_t bytes = 0;
  const double start = now();
  while (bytes < (std::size_t{640} << 20)) {
    layers.emplace_back(weights);
    bytes += layers.back().bytes();
  }
  const double pack_rate = double(bytes) / (now() - start);
  const std::vector<float> x(512 * kCols, 1.0f);
  std::vector<float> y(512 * kRows);
  const auto apply = [&](const cpu::Linear& layer, std::int64_t n) {
    layer({y.data(), {n, kRows}}, {x.data(), {n, kCols}}, activations);
  };
  const double rate = double(bytes) / best_seconds(5, [&] {
                        for (const cpu::Linear& layer : layers) apply(layer, 1);
                      });
  std::string line =
      fmt::format("{:6} pack {:5.2f} GB/s  T=1 {:6.2f} GB/s ({:3.0f} %)", name(dtype),
                  pack_rate * 1e-9, rate * 1e-9, 100 * rate / bandwidth);
  for (const std::int64_t n : {1, 2, 4, 8, 16, 64, 512}) {
    const double seconds = best_seconds(n < 64 ? 20 : 5, [&] { apply(layers.front(), n); });
    const double flops = 2.0 * kRows * kCols * double(n) / seconds;
    line += fmt::format("  T={} {:.0f} GFLOP/s ({:.0f} %)", n, flops * 1e-9,
                        100 * flops / peak);
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  return guarded_main("bench_linear", [&] {
    if (argc > 1) set_n_threads(std::atoi(argv[1]));
    if (argc > 2) cpu::set_instruction_set(argv[2]);
    const double bandwidth = cpu::read_bandwidth(), peak = cpu::flop_peak();
    fmt::print("{}, {} threads: read {:.1f} GB/s, peak {:.0f} GFLOP/s\n",
               cpu::instruction_set(), n_threads(), bandwidth * 1e-9, peak * 1e-9);
    const bool int8 = argc > 3 && std::string_view(argv[3]) == "int8";
    for (int i = 0; i < kDTypeCount; ++i)
      if (argc <= 4 || name(static_cast<DType>(i)) == argv[4])
        measure(static_cast<DType>(i), int8 ? Activations::int8 : Activations::f32,
                bandwidth, peak);
    return 0;
  });
}
