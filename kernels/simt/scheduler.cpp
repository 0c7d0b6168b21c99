// The life of a thread block: fibers are taken lazily, so that a thread that never waits
// runs as a plain loop iteration, and a thread that waits switches directly to the next.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "simt/report.hpp"
#include "simt/tracer.hpp"
#include "simt/worker.hpp"

namespace emulator {
namespace {

constexpr int kMaxThreads = 1024;
thread_local Worker* this_worker = nullptr;

}  // namespace

Worker::Worker() {
  fibers_.reserve(kMaxThreads);  // suspended contexts must not move
  free_fibers_.reserve(kMaxThreads);
}

Worker* Worker::current() { return this_worker; }
void Worker::become_current() { this_worker = this; }

void Worker::start_launch(const Launch& l) {
  launch = &l;
  failed_ = false;
  expired = false;
  dynamic_smem = l.smem;
  smem_buffers = dynamic_smem_buffers();
  order_ = config().order;
  random_ = config().seed * 0x9E3779B97F4A7C15ull + 88172645463325252ull;
  prepare(int(l.block.x * l.block.y * l.block.z));
}

void Worker::prepare(int n) {
  const std::size_t bytes = config().stack_bytes;
  if (fibers_.empty() || bytes > stacks_.stack_bytes()) {
    stacks_.allocate(bytes, kMaxThreads);
    fibers_.clear();
    free_fibers_.clear();
  }
  const auto size = std::size_t(n);
  lanes.resize(size);
  state_.resize(size);
  fiber_of_.resize(size);
  warps.resize((size + 31) / 32);
  for (unsigned i = 0; i < size; ++i) {
    const dim3 b = launch->block;
    lanes[i].index = {i % b.x, i / b.x % b.y, i / (b.x * b.y)};
  }
  start_order(n);
}

void Worker::start_order(int n) {
  start_order_.resize(std::size_t(n));
  for (int i = 0; i < n; ++i)
    start_order_[std::size_t(i)] = order_ == Order::reverse ? n - 1 - i : i;
}

void Worker::run_block(uint3 block, std::uint64_t ordinal) {
  const int n = int(lanes.size());
  blockIdx = block;
  blockDim = launch->block;
  gridDim = launch->grid;
  block_ordinal = ordinal;
  live_ = n;
  barrier_ = {};
  ready_.clear();
  eager_.clear();
  ready_head_ = started_ = 0;
  std::fill(state_.begin(), state_.end(), LaneState::idle);
  std::fill(fiber_of_.begin(), fiber_of_.end(), short(-1));
  for (Lane& l : lanes) {
    l.copy_group = 0;
    l.copies.clear();
  }
  for (std::size_t w = 0; w < warps.size(); ++w) {
    const int used = n - int(w) * 32;
    warps[w] = {0, used >= 32 ? 0u : ~0u << used};
  }
  poison_shared();
  if (Tracer* t = tracer()) t->block_begin(*this);
  const int first = next_lane();
  fiber_of_[std::size_t(first)] = short(take_fiber());
  enter(first);
  switch_fiber(own_, fibers_[std::size_t(fiber_of_[std::size_t(first)])]);
  if (Tracer* t = tracer()) t->block_end(*this);
  if (failed_) remake_fibers();
  learn_shared();
  ++counts.blocks;
  counts.threads += std::uint64_t(n);
}

int Worker::take_fiber() {
  if (!free_fibers_.empty()) {
    const int f = free_fibers_.back();
    free_fibers_.pop_back();
    return f;
  }
  const int f = int(fibers_.size());
  fibers_.emplace_back();
  stacks_.assign(fibers_.back(), f);
  fibers_.back().reset(fiber_entry);
  return f;
}

/// After a failure threads are left on their stacks; kernels hold no resources.
void Worker::remake_fibers() {
  free_fibers_.clear();
  for (std::size_t f = 0; f < fibers_.size(); ++f) {
    fibers_[f].reset(fiber_entry);
    free_fibers_.push_back(short(f));
  }
}

void Worker::fiber_entry() {
  Fiber::entered(this_worker->own_);
  this_worker->fiber_loop();
}

void Worker::fiber_loop() {
  for (;;) {
    const auto self = std::size_t(fiber_of_[std::size_t(current_lane)]);
    in_runtime.store(false, std::memory_order_relaxed);
    bool abandoned = false;
    try {
      launch->call(launch->arguments);
    } catch (const BlockAbandoned&) {
      abandoned = true;
    }
    in_runtime.store(true, std::memory_order_relaxed);
    if (abandoned) abandon_block();
    lane_exit();
    const int next = live_ ? next_lane() : -1;
    if (next >= 0 && fiber_of_[std::size_t(next)] < 0) {
      fiber_of_[std::size_t(next)] = short(self);
      enter(next);
      continue;
    }
    if (live_ && next < 0) {
      report_deadlock();
      abandon_block();
    }
    free_fibers_.push_back(short(self));
    if (next >= 0) enter(next);
    ++counts.switches;
    switch_fiber(fibers_[self],
                 next >= 0 ? fibers_[std::size_t(fiber_of_[std::size_t(next)])] : own_);
  }
}

void Worker::enter(int i) {
  current_lane = i;
  threadIdx = lanes[std::size_t(i)].index;
  state_[std::size_t(i)] = LaneState::running;
  atomics_in_a_row = 0;
}

int Worker::next_lane() {
  if (!eager_.empty()) {
    const int i = eager_.back();
    eager_.pop_back();
    return i;
  }
  if (order_ == Order::random) return random_lane();
  if (ready_head_ < ready_.size()) return ready_[ready_head_++];
  if (started_ < start_order_.size()) return start_order_[started_++];
  return -1;
}

int Worker::random_lane() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const std::size_t n_ready = ready_.size() - ready_head_,
                    n_idle = start_order_.size() - started_;
  if (n_ready + n_idle == 0) return -1;
  const std::size_t k = random_ % (n_ready + n_idle);
  if (k < n_ready) {
    std::swap(ready_[ready_head_], ready_[ready_head_ + k]);
    return ready_[ready_head_++];
  }
  std::swap(start_order_[started_], start_order_[started_ + k - n_ready]);
  return start_order_[started_++];
}

void Worker::make_ready(int i, bool from_warp) {
  state_[std::size_t(i)] = LaneState::ready;
  if (from_warp && order_ == Order::greedy) {
    eager_.push_back(i);
    return;
  }
  if (ready_head_ > 4 * kMaxThreads) {
    ready_.erase(ready_.begin(), ready_.begin() + std::ptrdiff_t(ready_head_));
    ready_head_ = 0;
  }
  ready_.push_back(i);
}

void Worker::wait() {
  const int next = next_lane();
  if (next < 0) {
    report_deadlock();
    throw BlockAbandoned();
  }
  continue_with(next);
}

/// A thread that polls must not be taken again before those that have not even started.
void Worker::yield() {
  make_ready(current_lane, false);
  if (started_ < start_order_.size())
    continue_with(start_order_[started_++]);
  else
    wait();
}

void Worker::continue_with(int next) {
  const int me = current_lane;
  short& fiber = fiber_of_[std::size_t(next)];
  if (fiber < 0) fiber = short(take_fiber());
  enter(next);
  if (next == me) return;
  ++counts.switches;
  switch_fiber(fibers_[std::size_t(fiber_of_[std::size_t(me)])],
               fibers_[std::size_t(fiber)]);
}

void Worker::lane_exit() {
  const int me = current_lane;
  lanes[std::size_t(me)].copies.clear();
  state_[std::size_t(me)] = LaneState::done;
  --live_;
  Warp& warp = warps[std::size_t(me) / 32];
  warp.exited |= 1u << (me % 32);
  for (int l = 0; warp.waiting && l < 32; ++l)
    if (warp.waiting >> l & 1u)
      complete_collective(me / 32, lanes[std::size_t(me / 32 * 32 + l)].mask, -1);
  if (live_ && barrier_.arrived == live_) release_barrier();
}

int Worker::barrier(BlockOp op, int predicate, Location loc) {
  if (barrier_.arrived == 0) {
    barrier_.loc = loc;
    barrier_.first = current_lane;
    barrier_.votes = 0;
    barrier_.op = op;
  } else if (barrier_.op != op || !same_place(barrier_.loc, loc)) [[unlikely]] {
    fail_barrier(loc);
  }
  ++barrier_.arrived;
  barrier_.votes += predicate != 0;
  state_[std::size_t(current_lane)] = LaneState::at_block;
  if (barrier_.arrived == live_) release_barrier();
  wait();
  switch (op) {
    case BlockOp::all:
      return barrier_.result == barrier_.participants;
    case BlockOp::any:
      return barrier_.result != 0;
    default:
      return barrier_.result;
  }
}

void Worker::fail_barrier(Location loc) {
  fail("barrier divergence",
       describe(barrier_.first) + " waits at " + place(barrier_.loc) + "\n  but " +
           describe(current_lane) + " arrived at " + place(loc) +
           "\n  __syncthreads() must be reached by all threads of the block at the same "
           "place.");
}

void Worker::release_barrier() {
  barrier_.result = barrier_.votes;
  barrier_.participants = live_;
  barrier_.arrived = 0;
  ++counts.barriers;
  if (Tracer* t = tracer()) t->barrier(*this);
  const int n = int(lanes.size());
  if (live_ == n && order_ == Order::forward && ready_head_ == ready_.size()) {
    ready_ = start_order_;
    ready_head_ = 0;
    std::fill(state_.begin(), state_.end(), LaneState::ready);
    return;
  }
  for (int k = 0; k < n; ++k) {
    const int i = order_ == Order::reverse ? n - 1 - k : k;
    if (state_[std::size_t(i)] == LaneState::at_block) make_ready(i, false);
  }
}

// ---- failures

void Worker::abandon_block() {
  failed_ = true;
  in_foreign_frame = false;
  Fiber& mine = fibers_[std::size_t(fiber_of_[std::size_t(current_lane)])];
  switch_fiber(mine, own_, true);
  std::abort();  // never continued
}

void Worker::report(const char* kind, const std::string& text) {
  failed_ = true;
  add_report(kind, text, launch->kernel);
}

void Worker::fail(const char* kind, const std::string& text) {
  report(kind, text);
  if (in_foreign_frame) abandon_block();
  throw BlockAbandoned();
}

/// Nobody can run: lists who waits where.
void Worker::report_deadlock() {
  std::map<std::string, std::pair<int, int>> waiting;  // place -> how many, one of them
  for (int i = 0; i < int(lanes.size()); ++i) {
    const LaneState state = state_[std::size_t(i)];
    if (state != LaneState::at_block && state != LaneState::at_warp) continue;
    const Lane& l = lanes[std::size_t(i)];
    const std::string where =
        state == LaneState::at_block
            ? "__syncthreads at " + place(barrier_.loc)
            : std::string(l.op->name) + " mask " + hex(l.mask) + " at " + place(l.loc);
    ++waiting.try_emplace(where, 0, i).first->second.first;
  }
  std::string text = "no thread of the block can go on (a GPU would hang):";
  for (const auto& [where, who] : waiting)
    text += "\n    " + std::to_string(who.first) + " thread(s) wait in " + where +
            ", e.g. " + describe(who.second);
  report("deadlock", text);
}

std::string Worker::describe(int i) const {
  const uint3 t = lanes[std::size_t(i)].index, b = blockIdx;
  char text[128];
  std::snprintf(text, sizeof text, "thread (%u,%u,%u) of block (%u,%u,%u)", t.x, t.y, t.z,
                b.x, b.y, b.z);
  return text;
}

}  // namespace emulator
