// Warp collectives: a rendezvous of the lanes that the mask names and that have not exited.
// Each brings its operands; the last to arrive computes everybody's result.
#include <bit>

#include "simt/report.hpp"
#include "simt/tracer.hpp"
#include "simt/worker.hpp"

namespace emulator {
namespace {

/// Calls f(lane, call) for each lane of the mask.
template <class F>
void for_lanes(WarpCalls calls, std::uint32_t mask, F f) {
  for (int l = 0; l < 32; ++l)
    if (mask >> l & 1u) f(l, *calls[l]);
}

/// A shuffle. `source` gives the lane to read, from the lane, its argument and width.
template <int Source(int lane, int arg, int width)>
void resolve_shuffle(WarpCalls calls, std::uint32_t mask) {
  std::uint64_t out[32];
  for_lanes(calls, mask, [&](int l, WarpCall& call) {
    const int source = Source(l, call.arg, call.width);
    const bool active = source >= 0 && source < 32 && (mask >> source & 1u);
    if (!active) call.failed_lane = source;
    out[l] = active ? calls[source]->in : ~0ull;
  });
  for_lanes(calls, mask, [&](int l, WarpCall& call) { call.out = out[l]; });
}
int segment(int lane, int width) { return lane & ~(width - 1); }
int from_index(int lane, int arg, int width) {
  return segment(lane, width) + (arg & (width - 1));
}
int from_below(int lane, int arg, int width) {
  return lane - arg < segment(lane, width) ? lane : lane - arg;
}
int from_above(int lane, int arg, int width) {
  return lane + arg >= segment(lane, width) + width ? lane : lane + arg;
}
int from_xor(int lane, int arg, int width) {
  return (lane ^ arg) >= segment(lane, width) + width ? lane : lane ^ arg;
}

/// One result for all lanes, folded over their values.
template <class T, T Fold(T, T)>
void resolve_fold(WarpCalls calls, std::uint32_t mask) {
  T result = T(calls[std::countr_zero(mask)]->in);
  const std::uint32_t rest = mask & (mask - 1);
  for_lanes(calls, rest, [&](int, WarpCall& call) { result = Fold(result, T(call.in)); });
  for_lanes(calls, mask, [&](int, WarpCall& call) { call.out = std::uint32_t(result); });
}
using U = std::uint32_t;
using S = std::int32_t;
U add(U a, U b) { return a + b; }
U least(U a, U b) { return a < b ? a : b; }
U most(U a, U b) { return a > b ? a : b; }
S least_signed(S a, S b) { return a < b ? a : b; }
S most_signed(S a, S b) { return a > b ? a : b; }
U bit_and(U a, U b) { return a & b; }
U bit_or(U a, U b) { return a | b; }
U bit_xor(U a, U b) { return a ^ b; }

std::uint32_t lanes_with(WarpCalls calls, std::uint32_t mask, std::uint64_t value) {
  std::uint32_t result = 0;
  for_lanes(calls, mask, [&](int l, WarpCall& c) { result |= U(c.in == value) << l; });
  return result;
}
void resolve_ballot(WarpCalls calls, std::uint32_t mask) {
  const std::uint32_t votes = lanes_with(calls, mask, 1);
  for_lanes(calls, mask, [&](int, WarpCall& c) { c.out = votes; });
}
void resolve_any(WarpCalls calls, std::uint32_t mask) {
  const bool any = lanes_with(calls, mask, 1) != 0;
  for_lanes(calls, mask, [&](int, WarpCall& c) { c.out = any; });
}
void resolve_all(WarpCalls calls, std::uint32_t mask) {
  const bool all = lanes_with(calls, mask, 1) == mask;
  for_lanes(calls, mask, [&](int, WarpCall& c) { c.out = all; });
}
void resolve_match_any(WarpCalls calls, std::uint32_t mask) {
  for_lanes(calls, mask, [&](int, WarpCall& c) { c.out = lanes_with(calls, mask, c.in); });
}
void resolve_match_all(WarpCalls calls, std::uint32_t mask) {
  const std::uint64_t value = calls[std::countr_zero(mask)]->in;
  const bool all = lanes_with(calls, mask, value) == mask;
  for_lanes(calls, mask, [&](int, WarpCall& c) { c.out = all ? mask : 0; });
}
void resolve_nothing(WarpCalls, std::uint32_t) {}

}  // namespace

const Collective kSyncwarp{"__syncwarp", resolve_nothing, false},
    kShflIdx{"__shfl_sync", resolve_shuffle<from_index>},
    kShflUp{"__shfl_up_sync", resolve_shuffle<from_below>},
    kShflDown{"__shfl_down_sync", resolve_shuffle<from_above>},
    kShflXor{"__shfl_xor_sync", resolve_shuffle<from_xor>},
    kBallot{"__ballot_sync", resolve_ballot}, kAny{"__any_sync", resolve_any},
    kAll{"__all_sync", resolve_all}, kReduceAdd{"__reduce_add_sync", resolve_fold<U, add>},
    kReduceMin{"__reduce_min_sync", resolve_fold<U, least>},
    kReduceMax{"__reduce_max_sync", resolve_fold<U, most>},
    kReduceMinSigned{"__reduce_min_sync", resolve_fold<S, least_signed>},
    kReduceMaxSigned{"__reduce_max_sync", resolve_fold<S, most_signed>},
    kReduceAnd{"__reduce_and_sync", resolve_fold<U, bit_and>},
    kReduceOr{"__reduce_or_sync", resolve_fold<U, bit_or>},
    kReduceXor{"__reduce_xor_sync", resolve_fold<U, bit_xor>},
    kMatchAny{"__match_any_sync", resolve_match_any},
    kMatchAll{"__match_all_sync", resolve_match_all};

void Worker::collective(std::uint32_t mask, const Collective& op, WarpCall& call,
                        Location loc) {
  const int me = current_lane, bit = me % 32;
  const bool valid_width = std::has_single_bit(unsigned(call.width)) && call.width <= 32;
  if (!(mask >> bit & 1u) || !valid_width) [[unlikely]]
    fail_call(mask, op, call, loc);
  Lane& mine = lane();
  mine.mask = mask;
  mine.op = &op;
  mine.call = &call;
  mine.loc = loc;
  state_[std::size_t(me)] = LaneState::at_warp;
  Warp& warp = warps[std::size_t(me) / 32];
  warp.waiting |= 1u << bit;
  if (complete_collective(me / 32, mask, me))
    state_[std::size_t(me)] = LaneState::running;
  else
    wait();
  if (call.failed_lane != -1) [[unlikely]]
    fail_shuffle(mask, op, call, loc);
}

void Worker::fail_call(std::uint32_t mask, const Collective& op, const WarpCall& call,
                       Location loc) {
  const std::string who =
      describe(current_lane) + " calls " + op.name + " at " + place(loc);
  const int bit = current_lane % 32;
  if (!(mask >> bit & 1u))
    fail("bad warp mask", who + " with mask " + hex(mask) +
                              " that does not contain its own lane " + std::to_string(bit));
  fail("bad shuffle width", who + " with width " + std::to_string(call.width) +
                                "; expected 1, 2, 4, 8, 16 or 32");
}

void Worker::fail_shuffle(std::uint32_t mask, const Collective& op, const WarpCall& call,
                          Location loc) {
  fail("shuffle from inactive lane",
       describe(current_lane) + ": " + op.name + " at " + place(loc) + " reads lane " +
           std::to_string(call.failed_lane) + ", which is not in mask " + hex(mask) +
           " or has exited");
}

void Worker::fail_divergence(int first, int other) {
  fail("warp divergence",
       waiting_place(first) + "\n  " + waiting_place(other) +
           "\n  all lanes named in the mask must execute the same intrinsic with the same "
           "mask.");
}

/// Whether two lanes are in the same operation.
static bool agree(const Lane& a, const Lane& b) {
  if (a.op != b.op || a.mask != b.mask) return false;
  return !a.op->same_line || same_place(a.loc, b.loc);
}

/// @param last  the lane that goes on by itself; -1 if a lane's exit completed the
/// operation
/// @return whether all lanes that the operation waits for had arrived
bool Worker::complete_collective(int w, std::uint32_t mask, int last) {
  Warp& warp = warps[std::size_t(w)];
  const std::uint32_t needed = mask & ~warp.exited;
  if (!needed || (warp.waiting & needed) != needed) return false;
  const int base = w * 32, first = base + std::countr_zero(needed);
  const Collective& op = *lanes[std::size_t(first)].op;
  WarpCall* calls[32] = {};
  for (std::uint32_t rest = needed; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    Lane& lane = lanes[std::size_t(base + l)];
    if (!agree(lanes[std::size_t(first)], lane)) [[unlikely]]
      fail_divergence(first, base + l);
    calls[l] = lane.call;
  }
  warp.waiting &= ~needed;
  op.resolve(calls, needed);
  ++counts.warp_ops;
  counts.mma += op.mma;
  if (&op == &kSyncwarp)
    if (Tracer* t = tracer()) t->warp_sync(*this, w, needed);
  const bool backwards = order_ == Order::reverse || order_ == Order::greedy;
  for (int k = 0; k < 32; ++k) {
    const int l = backwards ? 31 - k : k;
    if ((needed >> l & 1u) && base + l != last) make_ready(base + l, true);
  }
  return true;
}

std::string Worker::waiting_place(int i) const {
  const Lane& l = lanes[std::size_t(i)];
  return describe(i) + ": " + l.op->name + " mask " + hex(l.mask) + " at " + place(l.loc);
}

void warp_collective(std::uint32_t mask, const Collective& op, WarpCall& call,
                     Location loc) {
  Worker& worker = calling_worker(op.name);
  RuntimeScope scope(worker);
  worker.collective(mask, op, call, loc);
}

int block_barrier(BlockOp op, int predicate, Location loc) {
  Worker& worker = calling_worker("__syncthreads");
  RuntimeScope scope(worker);
  return worker.barrier(op, predicate, loc);
}

}  // namespace emulator
