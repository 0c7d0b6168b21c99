#include "lab/core/parallel.hpp"

#include <sched.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lab/core/error.hpp"

namespace lab {
namespace {

int read_topology(int cpu, const char* file) {
  std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" +
                   file);
  int id = -1;
  in >> id;
  return id;
}

/// oneTBB's pool, at most one, rebuilt when the number of threads changes.
struct Pool {
  int threads = 0;
  std::unique_ptr<tbb::global_control> limit;
  std::unique_ptr<tbb::task_arena> arena;

  void resize(int n) {
    if (n == threads) return;
    arena.reset();
    // Without this, oneTBB would not go beyond the number of CPUs that it sees.
    limit = std::make_unique<tbb::global_control>(
        tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(n));
    arena = std::make_unique<tbb::task_arena>(n);
    threads = n;
  }
};

Pool& pool() {
  static Pool p;
  if (p.threads == 0) p.resize(default_n_threads());
  return p;
}

}  // namespace

int default_n_threads() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  std::set<std::pair<int, int>> cores;  // two hardware threads of one core count once
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &usable)) {
      const int core = read_topology(cpu, "core_id");
      cores.emplace(read_topology(cpu, "physical_package_id"), core >= 0 ? core : cpu);
    }
  return std::max(1, static_cast<int>(cores.size()));
}

void set_n_threads(int n) {
  LAB_CHECK(n >= 1 && n <= 1024, "{} threads asked for; give a number from 1 to 1024", n);
  pool().resize(n);
}

int n_threads() { return pool().threads; }

void detail::parallel_for(std::int64_t n, std::int64_t grain, RangeFunction f,
                          void* context) {
  if (n <= 0) return;
  Pool& p = pool();
  if (p.threads == 1 || n <= grain) return f(context, 0, n);
  p.arena->execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(
            0, n, static_cast<std::size_t>(std::max<std::int64_t>(1, grain))),
        [&](const tbb::blocked_range<std::int64_t>& r) { f(context, r.begin(), r.end()); },
        tbb::simple_partitioner());
  });
}

}  // namespace lab
