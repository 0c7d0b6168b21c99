#include "simt/trace_clocks.hpp"

#include <algorithm>

namespace emulator {

void Clocks::begin_launch() {
  first_block_ = block_ + 1;
  released_.clear();
}

void Clocks::begin_block(std::uint32_t block, int threads) {
  const auto n = std::size_t(threads);
  block_ = block;
  clock_.assign(n, 1);
  at_barrier_.assign(n, 0);
  in_warp_.resize(n);
  for (auto& lanes : in_warp_) lanes.assign(32, 0);
  by_atomics_.assign(n, {});
  sources_.assign(n, {});
  sources_of_all_.clear();
  fenced_ = false;
  fences_.assign(n, {});
  fences_of_all_ = {};
  released_in_block_.clear();
}

void Clocks::join(Knowledge& into, const Knowledge& more) {
  if (into.size() < more.size()) into.resize(more.size(), 0);
  for (std::size_t i = 0; i < more.size(); ++i) into[i] = std::max(into[i], more[i]);
}

std::uint32_t Clocks::known(std::size_t thread, std::size_t other) const {
  if (other == thread) return clock_[thread];
  std::uint32_t clock = at_barrier_[other];
  if (other / 32 == thread / 32) clock = std::max(clock, in_warp_[thread][other % 32]);
  if (!by_atomics_[thread].empty()) clock = std::max(clock, by_atomics_[thread][other]);
  return clock;
}

bool Clocks::acquired(const Addresses& from, const Access& a) const {
  return std::any_of(from.begin(), from.end(), [&](const void* address) {
    const ByBlock& blocks = released_.at(address);
    const auto it = blocks.find(a.block);
    return it != blocks.end() && a.clock <= it->second[a.thread];
  });
}

bool Clocks::ordered(const Access& a, int thread) const {
  if (a.block < first_block_) return true;
  const auto t = std::size_t(thread);
  if (a.block == block_) return a.thread == t || a.clock <= known(t, a.thread);
  return acquired(sources_[t], a) || acquired(sources_of_all_, a);
}

void Clocks::barrier() {
  for (std::size_t i = 0; i < clock_.size(); ++i) at_barrier_[i] = clock_[i]++;
  for (const Addresses& s : sources_) sources_of_all_.insert(s.begin(), s.end());
  if (!fenced_) return;
  for (const Fenced& f : fences_) {
    join(fences_of_all_.block, f.block);
    join(fences_of_all_.device, f.device);
    fences_of_all_.sources.insert(f.sources.begin(), f.sources.end());
  }
}

void Clocks::warp_sync(int warp, std::uint32_t mask) {
  const std::size_t base = std::size_t(warp) * 32,
                    n = std::min<std::size_t>(32, clock_.size() - base);
  std::vector<std::uint32_t> lanes(32, 0);
  Knowledge learnt;
  Addresses sources;
  Fenced fences;
  for (std::size_t l = 0; l < n; ++l) {
    if (!(mask >> l & 1u)) continue;
    for (std::size_t k = 0; k < 32; ++k)
      lanes[k] = std::max(lanes[k], in_warp_[base + l][k]);
    lanes[l] = std::max(lanes[l], clock_[base + l]);
    join(learnt, by_atomics_[base + l]);
    sources.insert(sources_[base + l].begin(), sources_[base + l].end());
    if (!fenced_) continue;
    const Fenced& f = fences_[base + l];
    join(fences.block, f.block);
    join(fences.device, f.device);
    fences.sources.insert(f.sources.begin(), f.sources.end());
  }
  for (std::size_t l = 0; l < n; ++l) {
    if (!(mask >> l & 1u)) continue;
    in_warp_[base + l] = lanes;
    ++clock_[base + l];
    by_atomics_[base + l] = learnt;
    sources_[base + l] = sources;
    if (fenced_) fences_[base + l] = fences;
  }
}

void Clocks::fence(int thread, bool whole_device) {
  const auto t = std::size_t(thread);
  fenced_ = true;
  Knowledge now(clock_.size());
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = known(t, i);
  Fenced& f = fences_[t];
  f.block = now;
  if (whole_device) {
    f.device = std::move(now);
    f.sources = sources_[t];
    f.sources.insert(sources_of_all_.begin(), sources_of_all_.end());
  }
  ++clock_[t];  // what follows is not covered
}

void Clocks::atomic(int thread, const void* address) {
  acquire(std::size_t(thread), address);
  if (fenced_) release(std::size_t(thread), address);
}

void Clocks::acquire(std::size_t thread, const void* address) {
  if (const auto it = released_in_block_.find(address); it != released_in_block_.end())
    join(by_atomics_[thread], it->second);
  if (released_.count(address)) sources_[thread].insert(address);
}

void Clocks::release(std::size_t thread, const void* address) {
  Knowledge in_block = fences_[thread].block, on_device = fences_[thread].device;
  join(in_block, fences_of_all_.block);
  join(on_device, fences_of_all_.device);
  if (!in_block.empty()) join(released_in_block_[address], in_block);
  if (on_device.empty()) return;
  ByBlock& mine = released_[address];
  join(mine[block_], on_device);
  for (const Addresses* sources : {&fences_[thread].sources, &fences_of_all_.sources})
    for (const void* source : *sources)
      if (source != address)
        for (const auto& [block, knowledge] : released_.at(source))
          if (block != block_) join(mine[block], knowledge);
}

}  // namespace emulator
