// Speed of attention for prompts of 512 tokens and for decoding after many positions.
//     bench_attention [threads] [instruction set]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "lab/core/buffer.hpp"
#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/core/rng.hpp"
#include "lab/kernels/attention.hpp"
#include "lab/kernels/machine.hpp"

using namespace lab;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr std::int64_t kHeads = 9, kKvHeads = 3, kHeadDim = 64;

template <class KV>
void measure(const char* name, std::int64_t n_tokens, std::int64_t kv_len) {
  Rng rng(1);
  const auto random = [&]<class T>(T, std::int64_t n) {
    Buffer buffer(std::size_t(n) * sizeof(T));  // aligned, as a cache's is
    for (std::int64_t i = 0; i < n; ++i)
      buffer.as<T>()[i] = from_float<T>(float(rng.normal()));
    return buffer;
  };
  const std::int64_t kv_size = kv_len * kKvHeads * kHeadDim;
  Buffer q = random(float{}, n_tokens * kHeads * kHeadDim), out(q.size());
  const Buffer k = random(KV{}, kv_size), v = random(KV{}, kv_size);
  double best = 1e30;
  for (int i = 0; i < 30; ++i) {
    const double start = now();
    cpu::attention<KV>({out.as<float>(), {n_tokens, kHeads, kHeadDim}},
                       {q.as<float>(), {n_tokens, kHeads, kHeadDim}},
                       {k.as<KV>(), {kv_len, kKvHeads, kHeadDim}},
                       {v.as<KV>(), {kv_len, kKvHeads, kHeadDim}}, 0.125f);
    best = std::min(best, now() - start);
  }
  const double pairs =
      double(n_tokens) * double(kv_len) - 0.5 * double(n_tokens) * (double(n_tokens) - 1);
  fmt::print("{:4} n_tokens={:3} kv_len={:5} {:8.1f} us {:6.1f} GFLOP/s {:5.1f} GB/s\n",
             name, n_tokens, kv_len, best * 1e6,
             4 * kHeads * kHeadDim * pairs / best * 1e-9,
             2.0 * double(k.size()) / best * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  return guarded_main("bench_attention", [&] {
    if (argc > 1) set_n_threads(std::atoi(argv[1]));
    if (argc > 2) cpu::set_instruction_set(argv[2]);
    fmt::print("{}, {} threads\n", cpu::instruction_set(), n_threads());
    const std::int64_t shapes[][2] = {{512, 512}, {64, 512}, {8, 512},  {1, 64},
                                      {1, 256},   {1, 2048}, {1, 8192}, {128, 4096}};
    for (const auto& [n_tokens, kv_len] : shapes) {
      measure<float>("f32", n_tokens, kv_len);
      measure<Half>("f16", n_tokens, kv_len);
    }
    measure<BFloat16>("bf16", 512, 512);
    return 0;
  });
}
