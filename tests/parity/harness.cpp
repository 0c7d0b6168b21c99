#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "parity/harness.hpp"

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
