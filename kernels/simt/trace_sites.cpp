#include "simt/trace_sites.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "simt/report.hpp"

namespace emulator {
namespace {

constexpr std::uint64_t kSector = 32, kBanks = 32, kWord = 4, kWavefront = kBanks * kWord;

void add(Traffic& to, const Traffic& t) {
  to.requests += t.requests;
  to.lanes += t.lanes;
  to.units += t.units;
  to.ideal_units += t.ideal_units;
  to.useful_bytes += t.useful_bytes;
}

/// Whether all 32 lanes access neighbours, in order.
bool consecutive(const Request& r) {
  if (r.mask != ~0u) return false;
  for (std::uint64_t l = 1; l < 32; ++l)
    if (r.address[l] != r.address[0] + l * r.size) return false;
  return true;
}

/// The different addresses of the lanes [begin, end), sorted.
struct Addresses {
  std::uint64_t at[32];
  int n = 0;
  Addresses(const Request& r, int begin, int end) {
    for (int l = begin; l < end; ++l)
      if (r.mask >> l & 1u) at[n++] = r.address[l];
    std::sort(at, at + n);
    n = int(std::unique(at, at + n) - at);
  }
};

/// The most words that one bank has to deliver.
std::uint64_t worst_bank(const Addresses& a, std::uint32_t size) {
  std::uint64_t words[kBanks] = {}, worst = 0, last = ~0ull;
  for (int i = 0; i < a.n; ++i)
    for (std::uint64_t w = a.at[i] / kWord; w <= (a.at[i] + size - 1) / kWord; ++w) {
      if (w == last) continue;  // sorted: bytes of the same word follow each other
      last = w;
      worst = std::max(worst, ++words[w % kBanks]);
    }
  return worst;
}

}  // namespace

Traffic global_traffic(const Request& r) {
  Traffic t{1, std::uint64_t(std::popcount(r.mask)), 0, 0, 0};
  if (consecutive(r)) {
    t.useful_bytes = 32 * r.size;
    t.units = (r.address[0] + t.useful_bytes - 1) / kSector - r.address[0] / kSector + 1;
  } else {
    const Addresses a(r, 0, 32);
    t.useful_bytes = std::uint64_t(a.n) * r.size;
    std::uint64_t next = 0;  // the first sector that is not counted yet
    for (int i = 0; i < a.n; ++i) {
      const std::uint64_t first = std::max(a.at[i] / kSector, next),
                          end = (a.at[i] + r.size - 1) / kSector + 1;
      if (end > first) t.units += end - first;
      next = std::max(next, end);
    }
  }
  t.ideal_units = (t.useful_bytes + kSector - 1) / kSector;
  return t;
}

Traffic shared_traffic(const Request& r) {
  Traffic t{1, std::uint64_t(std::popcount(r.mask)), 0, 0, 0};
  if (consecutive(r)) {
    t.useful_bytes = 32 * r.size;
    t.units = t.ideal_units = std::max<std::uint64_t>(1, t.useful_bytes / kWavefront);
    return t;
  }
  const int lanes = r.size <= kWord ? 32 : std::max(1, int(kWavefront / r.size));
  for (int begin = 0; begin < 32; begin += lanes) {
    const Addresses a(r, begin, begin + lanes);
    if (a.n == 0) continue;
    t.useful_bytes += std::uint64_t(a.n) * r.size;
    t.units += worst_bank(a, r.size);
    ++t.ideal_units;
  }
  return t;
}

void Site::record(int thread, int threads, std::uint64_t address, std::uint32_t size) {
  if (executed_.size() < std::size_t(threads)) {
    executed_.resize(std::size_t(threads));
    queues_.resize(std::size_t(threads + 31) / 32);
  }
  const int warp = thread / 32, lane = thread % 32;
  Queue& queue = queues_[std::size_t(warp)];
  const std::uint32_t number = executed_[std::size_t(thread)]++;
  constexpr std::size_t kMaxOpen = 4096;
  if (number < queue.settled) {  // the others were not waited for: alone
    Request r{1u << lane, size, {}};
    r.address[lane] = address;
    add(traffic_, shared_ ? shared_traffic(r) : global_traffic(r));
    return;
  }
  while (queue.open.size() <= number - queue.settled) queue.open.emplace_back();
  Request& r = queue.open[number - queue.settled];
  r.mask |= 1u << lane;
  r.size = size;
  r.address[lane] = address;
  const int in_warp = std::min(32, threads - warp * 32);
  const std::uint32_t full = in_warp == 32 ? ~0u : ~(~0u << in_warp);
  while (!queue.open.empty() &&
         (queue.open.front().mask == full || queue.open.size() > kMaxOpen))
    settle(queue);
}

void Site::settle(Queue& queue) {
  const Request& r = queue.open.front();
  if (r.mask) add(traffic_, shared_ ? shared_traffic(r) : global_traffic(r));
  queue.open.pop_front();
  ++queue.settled;
}

void Site::end_block() {
  for (Queue& q : queues_) {
    while (!q.open.empty()) settle(q);
    q.settled = 0;
  }
  std::fill(executed_.begin(), executed_.end(), 0u);
}

std::string Site::line() const { return pc_ ? source_lines({pc_}).front() : place(loc_); }

std::uint32_t Sites::find(const void* pc, Location loc, bool store, bool shared) {
  const std::uint64_t place =
      pc ? std::uint64_t(reinterpret_cast<std::uintptr_t>(pc))
         : (std::uint64_t(reinterpret_cast<std::uintptr_t>(loc.file)) * 31 + loc.line) |
               std::uint64_t(1) << 60;
  const std::uint64_t key = place << 2 | std::uint64_t(store) << 1 | std::uint64_t(shared);
  Cached& cached = cache_[(key ^ key >> 14) % kCache];
  if (cached.key == key) return cached.index;
  const auto [it, is_new] = index_.try_emplace(key, std::uint32_t(sites_.size()));
  if (is_new) sites_.push_back(std::make_unique<Site>(pc, loc, store, shared));
  cached = {key, it->second};
  return it->second;
}

void Sites::record(std::uint32_t index, int thread, int threads, std::uint64_t address,
                   std::uint32_t size) {
  Site& site = *sites_[index];
  if (!site.used) {
    site.used = true;
    used_.push_back(&site);
  }
  site.record(thread, threads, address, size);
}

void Sites::end_block() {
  for (Site* s : used_) {
    s->end_block();
    s->used = false;
  }
  used_.clear();
}
void Sites::reset() {
  for (const auto& s : sites_) s->reset();
}

void Sites::add_to(Counters& c) const {
  for (const auto& s : sites_)
    add(s->shared() ? (s->store() ? c.shared_store : c.shared_load)
                    : (s->store() ? c.global_store : c.global_load),
        s->traffic());
}

std::vector<LineTraffic> Sites::lines() const {
  std::vector<const void*> code;  // all at once: each question to addr2line is expensive
  for (const auto& s : sites_)
    if (s->traffic().requests && s->pc()) code.push_back(s->pc());
  source_lines(code);
  std::map<std::tuple<std::string, bool, bool>, Traffic> sums;
  for (const auto& s : sites_)
    if (s->traffic().requests)
      add(sums[{s->line(), s->shared(), s->store()}], s->traffic());
  std::vector<LineTraffic> result;
  for (const auto& [key, traffic] : sums)
    result.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), traffic});
  return result;
}

}  // namespace emulator
