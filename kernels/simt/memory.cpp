// Shared memory of a block, cp.async, and the accounts of what intrinsics read and write.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "simt/report.hpp"
#include "simt/tracer.hpp"
#include "simt/worker.hpp"

#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace emulator {
namespace {

constexpr int kPoison = 0xFF;

struct SharedRegistry {
  std::mutex mutex;
  std::vector<SmemFunction> buffers;
  std::map<const void*, std::size_t> limits;
};
SharedRegistry& registry() {
  static SharedRegistry& r = *new SharedRegistry;  // used before main
  return r;
}

bool is_written(const SharedRange& r) {
  return std::any_of(r.begin, r.begin + r.bytes,
                     [](unsigned char b) { return b != kPoison; });
}

}  // namespace

bool register_dynamic_smem(SmemFunction f) {
  std::lock_guard lock(registry().mutex);
  registry().buffers.push_back(f);
  return true;
}

std::vector<unsigned char*> dynamic_smem_buffers() {
  std::vector<unsigned char*> result;
  for (SmemFunction f : registry().buffers) {
    unsigned char* p = f();
    if (std::find(result.begin(), result.end(), p) == result.end()) result.push_back(p);
  }
  return result;
}

std::size_t& dynamic_smem_limit(const void* kernel) {
  std::lock_guard lock(registry().mutex);
  return registry().limits.try_emplace(kernel, config().max_static_smem).first->second;
}

/// A program's static shared arrays may be many, and most belong to other kernels: a
/// kernel's first block shows which ones it uses, and only these are filled again.
void Worker::poison_shared() {
  for (unsigned char* p : smem_buffers) {
#if defined(SIMT_ASAN)
    const std::size_t used = (dynamic_smem + 7) / 8 * 8;
    __asan_unpoison_memory_region(p, kSmemCapacity);
    __asan_poison_memory_region(p + used, kSmemCapacity - used);
#endif
    if (config().poison) std::memset(p, kPoison, dynamic_smem);
  }
  if (!config().poison) return;
  const auto known = shared_of_.find(launch->kernel);
  learning_ = known == shared_of_.end();
  for (const SharedRange& r : learning_ ? static_shared_arrays() : known->second)
    std::memset(r.begin, kPoison, r.bytes);
}

void Worker::learn_shared() {
#if defined(SIMT_ASAN)
  for (unsigned char* p : smem_buffers) __asan_unpoison_memory_region(p, kSmemCapacity);
#endif
  if (!config().poison || !learning_) return;
  std::vector<SharedRange>& used = shared_of_[launch->kernel];
  for (const SharedRange& r : static_shared_arrays())
    if (is_written(r)) used.push_back(r);
}

void cp_async(void* shared, const void* global, std::size_t bytes, std::size_t valid_bytes,
              Location loc) {
  Worker& worker = calling_worker("cp.async");
  RuntimeScope scope(worker);
  const auto addresses =
      reinterpret_cast<std::uintptr_t>(shared) | reinterpret_cast<std::uintptr_t>(global);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    worker.fail("cp.async", worker.describe(worker.current_lane) + " at " + place(loc) +
                                " copies " + std::to_string(bytes) +
                                " bytes; expected 4, 8 or 16");
  if (addresses % bytes != 0)
    worker.fail("cp.async", worker.describe(worker.current_lane) + " at " + place(loc) +
                                ": both addresses must be multiples of " +
                                std::to_string(bytes));
  std::memset(shared, kPoison, bytes);
  if (Tracer* t = tracer()) t->copy_issued(worker, shared, bytes, loc);
  Lane& lane = worker.lane();
  lane.copies.push_back({shared, global, std::uint32_t(bytes),
                         std::uint32_t(std::min(valid_bytes, bytes)), lane.copy_group,
                         loc});
  worker.counts.async_bytes += bytes;
}

void cp_async_commit() {
  Worker& worker = calling_worker("cp.async.commit_group");
  RuntimeScope scope(worker);
  ++worker.lane().copy_group;
}

void cp_async_wait(int groups_under_way) {
  Worker& worker = calling_worker("cp.async.wait_group");
  RuntimeScope scope(worker);
  Lane& lane = worker.lane();
  std::size_t made = 0;
  for (const PendingCopy& c : lane.copies) {
    if (int(lane.copy_group - c.group) <= groups_under_way) break;
    if (Tracer* t = tracer())
      t->copy_made(worker, c.to, c.from, c.bytes, c.valid_bytes, c.loc);
    std::memcpy(c.to, c.from, c.valid_bytes);
    std::memset(static_cast<char*>(c.to) + c.valid_bytes, 0, c.bytes - c.valid_bytes);
    ++made;
  }
  lane.copies.erase(lane.copies.begin(), lane.copies.begin() + std::ptrdiff_t(made));
}

void read_memory(void* to, const void* from, std::size_t bytes, Location loc) {
  Worker& worker = calling_worker("a load");
  RuntimeScope scope(worker);
  if (Tracer* t = tracer()) t->access(worker, from, bytes, false, loc);
  std::memcpy(to, from, bytes);
}

void write_memory(void* to, const void* from, std::size_t bytes, Location loc) {
  Worker& worker = calling_worker("a store");
  RuntimeScope scope(worker);
  if (Tracer* t = tracer()) t->access(worker, to, bytes, true, loc);
  std::memcpy(to, from, bytes);
}

void note_atomic(const void* p, std::size_t bytes, Location loc) {
  Worker* worker = Worker::current();
  if (!worker) return;
  RuntimeScope scope(*worker);
  constexpr unsigned kPatience = 256;
  if (++worker->atomics_in_a_row > kPatience) worker->yield();
  ++worker->counts.atomics;
  if (Tracer* t = tracer()) t->atomic(*worker, p, bytes, loc);
}

void note_fence(bool whole_device) {
  Worker* worker = Worker::current();
  if (!worker) return;
  RuntimeScope scope(*worker);
  if (Tracer* t = tracer()) t->fence(*worker, whole_device);
}

void yield() {
  Worker* worker = Worker::current();
  if (!worker) return;
  RuntimeScope scope(*worker);
  worker->yield();
}

int lane_id() { return calling_worker("a warp operation").current_lane % 32; }

void device_fail(const char* kind, const std::string& text) {
  Worker& worker = calling_worker(kind);
  RuntimeScope scope(worker);
  worker.fail(kind, worker.describe(worker.current_lane) + ": " + text);
}

Worker& calling_worker(const char* function) {
  Worker* worker = Worker::current();
  if (!worker)
    throw std::logic_error(std::string(function) +
                           " is called by host code; it works only in "
                           "a kernel that is launched");
  return *worker;
}

}  // namespace emulator
