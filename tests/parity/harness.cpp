#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "parity/harness.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace lab::test {

std::vector<ParityRow>& parity_table() {
  static std::vector<ParityRow> table;
  return table;
}

Stream stream() {
  static const Stream s = gpu::make_stream();
  return s;
}

std::string worse_than_naive(const std::vector<float>& a, const std::vector<float>& naive,
                             const std::vector<float>& exact) {
  if (a.size() != exact.size() || naive.size() != exact.size())
    return fmt::format("{} and {} elements, not {}", a.size(), naive.size(), exact.size());
  double error = 0, allowed = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double here = std::abs(double(a[i]) - exact[i]);
    if (!(here <= error)) error = here, worst = i;
    if (std::isnan(error)) break;
    allowed = std::max(allowed, std::abs(double(naive[i]) - exact[i]));
  }
  if (error <= 2 * allowed + 1e-5) return "";
  return fmt::format(
      "[{}] of {}: {} instead of {}, an error of {}; the naive version's is {}", worst,
      exact.size(), a[worst], exact[worst], error, allowed);
}

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

/// Without the GPU nothing was tested, and that is not success.
struct NeedsGpu : Listener {
  using Listener::Listener;
  void testRunStarting(const Catch::TestRunInfo&) override {
    const std::string missing = gpu::gpu_missing();
    if (missing.empty()) return;
    std::printf("SKIPPED: %s\n", missing.c_str());
    std::fflush(stdout);
    std::_Exit(kExitUnavailable);
  }
};

CATCH_REGISTER_LISTENER(NeedsGpu)

}  // namespace
}  // namespace lab::test
