// Launch checks, the pool of workers, the watchdog, configuration and counters.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "simt/faults.hpp"
#include "simt/report.hpp"
#include "simt/tracer.hpp"
#include "simt/worker.hpp"

namespace emulator {
namespace {

/// The workers and their threads. They persist between launches.
class Pool {
 public:
  ~Pool() { stop(); }
  void run(const Launch& launch, Counters& counters);

 private:
  struct Thread {
    Worker worker;
    std::thread thread;
  };

  void resize(std::size_t n);
  void stop();
  void serve(Worker& worker);
  void execute(Worker& worker);
  void await(std::unique_lock<std::mutex>& lock);

  std::vector<std::unique_ptr<Thread>> threads_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  const Launch* launch_ = nullptr;
  std::uint64_t generation_ = 0;
  std::size_t unfinished_ = 0;
  bool stopping_ = false;
  std::atomic<std::uint64_t> next_block_{0};
  std::atomic<bool> failed_{false};
  std::uint64_t first_ordinal_ = 1;
};

void Pool::resize(std::size_t n) {
  if (threads_.size() == n) return;
  stop();
  stopping_ = false;
  for (std::size_t i = 0; i < n; ++i) {
    threads_.push_back(std::make_unique<Thread>());
    Worker& worker = threads_.back()->worker;
    threads_.back()->thread = std::thread([this, &worker] { serve(worker); });
  }
}

void Pool::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (auto& t : threads_) t->thread.join();
  threads_.clear();
}

void Pool::serve(Worker& worker) {
  worker.become_current();
  prepare_signal_stack();
  std::uint64_t seen = 0;
  {
    std::lock_guard lock(mutex_);
    seen = launch_ ? generation_ - 1 : generation_;
  }
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    execute(worker);
    std::lock_guard lock(mutex_);
    if (--unfinished_ == 0) done_.notify_all();
  }
}

void Pool::execute(Worker& worker) {
  const dim3 grid = launch_->grid;
  const std::uint64_t total = std::uint64_t(grid.x) * grid.y * grid.z;
  worker.start_launch(*launch_);
  for (std::uint64_t b; !failed_ && (b = next_block_++) < total;) {
    worker.run_block({unsigned(b % grid.x), unsigned(b / grid.x % grid.y),
                      unsigned(b / (std::uint64_t(grid.x) * grid.y))},
                     first_ordinal_ + b);
    if (worker.failed()) failed_ = true;
  }
}

/// Waits for the workers; after the time limit it makes them give up.
void Pool::await(std::unique_lock<std::mutex>& lock) {
  const auto finished = [this] { return unfinished_ == 0; };
  if (done_.wait_for(lock, std::chrono::seconds(config().timeout_s), finished)) return;
  failed_ = true;
  do
    for (auto& t : threads_) {
      t->worker.expired = true;
      interrupt(t->thread.native_handle());
    }
  while (!done_.wait_for(lock, std::chrono::milliseconds(50), finished));
  if (last_report().empty())  // no thread was caught, but blocks have been left out
    add_report(
        "time limit",
        "the launch has not ended after " + std::to_string(config().timeout_s) + " s",
        launch_->kernel);
}

void Pool::run(const Launch& launch, Counters& counters) {
  // The tracer's view of memory is that of one thread.
  resize(tracer() ? 1 : std::size_t(std::max(1, config().workers)));
  const FaultHandlers handlers;
  std::unique_lock lock(mutex_);
  launch_ = &launch;
  next_block_ = 0;
  failed_ = false;
  unfinished_ = threads_.size();
  ++generation_;
  work_.notify_all();
  await(lock);
  launch_ = nullptr;
  first_ordinal_ += std::uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  ++counters.launches;
  for (auto& t : threads_) {
    const Counters c = std::exchange(t->worker.counts, Counters{});
    counters.blocks += c.blocks;
    counters.threads += c.threads;
    counters.switches += c.switches;
    counters.barriers += c.barriers;
    counters.warp_ops += c.warp_ops;
    counters.mma += c.mma;
    counters.atomics += c.atomics;
    counters.async_bytes += c.async_bytes;
  }
}

struct Device {
  std::mutex mutex;  // one kernel at a time, whichever host thread launches it
  Counters counters, shown;
  Pool pool;
};
Device& device() {
  static Device d;
  return d;
}

/// Why the launch cannot be, or empty.
std::string refusal(const Launch& l) {
  const std::uint64_t threads = std::uint64_t(l.block.x) * l.block.y * l.block.z;
  const auto limit = std::uint64_t(std::min(config().max_threads_per_block, 1024));
  if (threads == 0 || threads > limit || l.block.z > 64)
    return "a block of (" + std::to_string(l.block.x) + "," + std::to_string(l.block.y) +
           "," + std::to_string(l.block.z) + ") = " + std::to_string(threads) +
           " threads; expected 1 to " + std::to_string(limit) + ", at most 64 in z";
  if (!l.grid.x || !l.grid.y || !l.grid.z || l.grid.x > 0x7fffffffu || l.grid.y > 65535 ||
      l.grid.z > 65535)
    return "a grid of (" + std::to_string(l.grid.x) + "," + std::to_string(l.grid.y) + "," +
           std::to_string(l.grid.z) +
           ") blocks; expected at least 1 in each dimension, at "
           "most 2^31-1 in x and 65535 in y and z";
  return "";
}

const char* environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

}  // namespace

Config::Config()
#if defined(SIMT_ASAN)
    : stack_bytes(512 * 1024)
#else
    : stack_bytes(128 * 1024)
#endif
{
  const std::string_view name = environment("SIMT_ORDER", "forward");
  order = name == "reverse"  ? Order::reverse
          : name == "random" ? Order::random
          : name == "greedy" ? Order::greedy
                             : Order::forward;
  seed = std::strtoull(environment("SIMT_SEED", "1"), nullptr, 10);
  workers = std::max(1, std::atoi(environment("SIMT_WORKERS", "1")));
  timeout_s = std::max(1, std::atoi(environment("SIMT_TIMEOUT", "300")));
}

Config& config() {
  static Config& c = *new Config;
  return c;
}

cudaError_t run(const Launch& launch) {
  Device& d = device();
  std::lock_guard lock(d.mutex);
  if (const std::string reason = refusal(launch); !reason.empty()) {
    clear_report();
    add_report("launch refused", reason, launch.kernel);
    return set_error(cudaErrorInvalidConfiguration);
  }
  if (const std::size_t limit = dynamic_smem_limit(launch.kernel); launch.smem > limit) {
    clear_report();
    add_report("launch refused",
               std::to_string(launch.smem) +
                   " bytes of dynamic shared memory; expected at most " +
                   std::to_string(limit) +
                   ". More needs cudaFuncSetAttribute(kernel, "
                   "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)",
               launch.kernel);
    return set_error(cudaErrorInvalidValue);
  }
  clear_report();
  if (Tracer* t = tracer()) t->launch_begin();
  d.pool.run(launch, d.counters);
  return last_report().empty() ? cudaSuccess : set_error(cudaErrorLaunchFailure);
}

const Counters& counters() {
  Device& d = device();
  std::lock_guard lock(d.mutex);
  d.shown = d.counters;
  if (Tracer* t = tracer()) t->add_to(d.shown);
  return d.shown;
}

void reset_counters() {
  Device& d = device();
  std::lock_guard lock(d.mutex);
  d.counters = {};
  if (Tracer* t = tracer()) t->reset_counters();
}

bool traces_memory() { return tracer() != nullptr; }

std::vector<LineTraffic> line_traffic() {
  return tracer() ? tracer()->lines() : std::vector<LineTraffic>{};
}

std::string line_traffic_table() {
  char text[256];
  std::snprintf(text, sizeof text, "%-24s %-6s %-5s %10s %6s  %s\n", "line", "space",
                "kind", "requests", "lanes", "per request of a warp");
  std::string table = text;
  for (const LineTraffic& l : line_traffic()) {
    const Traffic& t = l.traffic;
    const double n = double(t.requests);
    std::snprintf(text, sizeof text, "%-24s %-6s %-5s %10llu %6.1f  %.2f %s (ideal %.2f)",
                  l.line.c_str(), l.shared ? "shared" : "global",
                  l.store ? "store" : "load", (unsigned long long)t.requests,
                  double(t.lanes) / n, double(t.units) / n,
                  l.shared ? "wavefronts" : "sectors", double(t.ideal_units) / n);
    table += text;
    if (t.units > t.ideal_units)
      table += l.shared ? "  <- bank conflicts" : "  <- not coalesced";
    table += "\n";
  }
  return table;
}

namespace {

// Leaves before the tracer's statics do, which are never destroyed.
[[maybe_unused]] const bool print_table_at_exit = [] {
  if (*environment("SIMT_STATS", "0") == '1' && tracer())
    std::atexit([] { std::fputs(line_traffic_table().c_str(), stdout); });
  return true;
}();

}  // namespace

}  // namespace emulator
