#include "simt/trace.hpp"

#include <link.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "simt/heap.hpp"
#include "simt/report.hpp"

namespace emulator {
namespace {

// Second halves of what found_ holds for findings that concern one instruction.
constexpr std::uint32_t kBounds = ~0u, kAlignment = ~1u, kValue = ~2u;

/// Whether p lies in the program's own constants and variables.
bool in_program(const void* p) {
  struct Segments {
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
  };
  static const Segments& segments = *new Segments([] {
    Segments s;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (info->dlpi_phdr[i].p_type == PT_LOAD) {
              const std::uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
              static_cast<Segments*>(out)->ranges.emplace_back(
                  begin, begin + info->dlpi_phdr[i].p_memsz);
            }
          return 0;
        },
        &s);
    return s;
  }());
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  return std::any_of(segments.ranges.begin(), segments.ranges.end(), [&](const auto& r) {
    return address >= r.first && address < r.second;
  });
}

}  // namespace

MemoryTracer& memory_tracer() {
  static MemoryTracer& t = *new MemoryTracer;
  return t;
}
Tracer* tracer() {
  static Tracer* t = &memory_tracer();
  return t;
}

// ---- where

void MemoryTracer::prepare_shared(Worker& worker) {
  dynamic_cells_.resize(worker.smem_buffers.size());
  for (auto& cells : dynamic_cells_) cells.resize(kSmemCapacity / 4);
  if (!symbol_at_.empty()) return;
  const std::vector<TlsSymbol>& symbols = tls_symbols();
  std::size_t end = 4;
  for (const TlsSymbol& s : symbols) end = std::max(end, s.offset + s.bytes);
  symbol_at_.assign((end + 3) / 4, -1);
  static_cells_.resize(symbol_at_.size());
  std::map<std::string, int> owners;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const std::string& name = symbols[i].name;
    const std::string owner = name.substr(0, name.rfind("::"));
    owner_of_.push_back(owners.try_emplace(owner, int(owners.size())).first->second);
    if (symbols[i].shared)
      for (std::size_t o = symbols[i].offset; o < symbols[i].offset + symbols[i].bytes; ++o)
        symbol_at_[o / 4] = int(i);
  }
}

MemoryTracer::Target MemoryTracer::locate_static(const Event&, std::size_t offset) {
  const int symbol = symbol_at_[offset / 4];
  return {Target::static_shared, static_cells_.data(), offset, nullptr, symbol};
}

MemoryTracer::Target MemoryTracer::locate(Worker& worker, const Event& e) {
  const auto* p = static_cast<const unsigned char*>(e.address);
  if (arena_.contains(p))
    return {Target::global, arena_.cells(), arena_.offset_of(p),
            arena_.block_of(p, e.bytes)};
  for (std::size_t i = 0; i < worker.smem_buffers.size(); ++i)
    if (p >= worker.smem_buffers[i] && p < worker.smem_buffers[i] + kSmemCapacity)
      return {Target::dynamic_shared, dynamic_cells_[i].data(),
              std::size_t(p - worker.smem_buffers[i])};
  if (const char* image = tls_image()) {
    const std::size_t offset = std::size_t(static_cast<const char*>(e.address) - image);
    if (offset < symbol_at_.size() * 4) return locate_static(e, offset);
  }
  const auto* arguments = static_cast<const unsigned char*>(worker.launch->arguments);
  if ((p >= arguments && p < arguments + worker.launch->argument_bytes) || in_program(p) ||
      is_pinned_pointer(p))
    return {Target::uninteresting};
  return {Target::illegal};
}

std::string MemoryTracer::describe(const Worker& worker, const void* p) {
  if (arena_.contains(p)) return arena_.describe(p);
  const auto* byte = static_cast<const unsigned char*>(p);
  for (const unsigned char* buffer : worker.smem_buffers)
    if (byte >= buffer && byte < buffer + kSmemCapacity)
      return "dynamic __shared__ memory, byte " + std::to_string(byte - buffer) + " of " +
             std::to_string(worker.dynamic_smem);
  const std::size_t offset = std::size_t(static_cast<const char*>(p) - tls_image());
  const int symbol = offset < symbol_at_.size() * 4 ? symbol_at_[offset / 4] : -1;
  if (symbol < 0) return "memory outside every __shared__ array";
  const TlsSymbol& s = tls_symbols()[std::size_t(symbol)];
  return "__shared__ " + s.name + ", byte " + std::to_string(offset - s.offset) + " of " +
         std::to_string(s.bytes);
}

std::string MemoryTracer::actor(const Worker& worker, const Event& e, std::uint32_t site) {
  return worker.describe(worker.current_lane) + (e.write ? " writes at " : " reads at ") +
         sites_[site].line();
}

void MemoryTracer::find(Worker& worker, const char* kind, std::uint32_t site,
                        std::uint32_t other, const std::string& text) {
  if (found_.insert({site, other}).second) worker.report(kind, text);
}

// ---- one access

void MemoryTracer::on_access(Worker& worker, const Event& e) {
  if (worker.on_fiber_stack(e.address)) return;
  const Target t = locate(worker, e);
  if (t.kind == Target::uninteresting) return;
  const std::uint32_t site = sites_.find(e.pc, e.loc, e.write, t.shared());
  if (t.kind == Target::illegal) {
    const std::string who = actor(worker, e, site);
    if (reinterpret_cast<std::uintptr_t>(e.address) < 65536)
      worker.fail("null pointer", who);
    find(worker, "host pointer used by a kernel", site, kBounds,
         who + " in memory that is neither the device's nor shared");
    return;
  }
  const bool outside = t.kind == Target::global ? !t.block
                       : t.kind == Target::dynamic_shared
                           ? t.offset + e.bytes > worker.dynamic_smem
                           : static_array_is_left(sites_[site], t.symbol);
  if (outside) {
    find(worker, t.shared() ? "out-of-bounds shared access" : "out-of-bounds global access",
         site, kBounds, describe(worker, e.address) + "\n  " + actor(worker, e, site));
    return;
  }
  if (t.kind == Target::static_shared && t.symbol < 0) return;  // threadIdx and its like
  if (std::has_single_bit(e.bytes) && e.bytes <= 16 &&
      reinterpret_cast<std::uintptr_t>(e.address) % e.bytes != 0) {
    find(worker, "misaligned access", site, kAlignment,
         describe(worker, e.address) + "\n  " + actor(worker, e, site) + ", " +
             std::to_string(e.bytes) +
             " bytes at once: the address must be a multiple of it");
    return;
  }
  check_cells(worker, e, t, site);
  if (e.counted && !e.atomic)
    sites_.record(site, worker.current_lane, int(worker.lanes.size()), t.offset,
                  std::uint32_t(e.bytes));
}

/// Arrays lie side by side: an instruction that has used an array of one function and now
/// meets another function's, or none, has run over the end. (An array of the same function
/// may be meant: pointers to both may be swapped.)
bool MemoryTracer::static_array_is_left(Site& site, int symbol) {
  const int owner = symbol < 0 ? -1 : owner_of_[std::size_t(symbol)];
  if (site.owner_launch == launch_) return site.owner != owner;
  if (owner < 0) return false;
  site.owner = owner;
  site.owner_launch = launch_;
  return false;
}

void MemoryTracer::check_cells(Worker& worker, const Event& e, const Target& t,
                               std::uint32_t site) {
  const int thread = worker.current_lane;
  Access mine{site, clocks_.block(), clocks_.now(thread), std::uint16_t(thread),
              0,    e.atomic};
  for (std::size_t done = 0; done < e.bytes;) {
    const std::size_t at = t.offset + done, in_cell = at % 4,
                      n = std::min(e.bytes - done, 4 - in_cell);
    const auto bytes = std::uint8_t(((1u << n) - 1) << in_cell);
    Cell& cell = t.cells[at / 4];
    if (t.shared() && cell.block != mine.block) {
      cell = Cell{};
      cell.block = mine.block;
    }
    const bool defined = (cell.defined & bytes) == bytes || (t.block && t.block->defined);
    if ((!e.write || e.updates) && !defined)
      find(worker, "uninitialised read", site, kValue,
           describe(worker, static_cast<const char*>(e.address) + done) + "\n  " +
               actor(worker, e, site) + ", nobody has written it" +
               (t.shared() ? " in this block" : ""));
    check_races(worker, e, cell, bytes, site);
    cell.defined |= e.write ? bytes : 0;
    mine.bytes = bytes;
    note(cell, mine, e.write, thread);
    done += n;
  }
}

void MemoryTracer::check_races(Worker& worker, const Event& e, const Cell& cell,
                               std::uint8_t bytes, std::uint32_t site) {
  const auto races = [&](const Access& a) {
    return (a.bytes & bytes) && !(a.atomic && e.atomic) &&
           !clocks_.ordered(a, worker.current_lane);
  };
  if (races(cell.write)) find_race(worker, e, site, cell.write, true);
  if (!e.write) return;
  if (races(cell.read))
    find_race(worker, e, site, cell.read, false);
  else if (races(cell.older_read))
    find_race(worker, e, site, cell.older_read, false);
}

/// Two reads are remembered: the last, and one that does not happen before it, of another
/// warp if there is one.
void MemoryTracer::note(Cell& cell, const Access& a, bool write, int thread) {
  if (write) {
    const bool mine = cell.write.thread == a.thread && cell.write.block == a.block &&
                      cell.write.clock == a.clock && cell.write.atomic == a.atomic;
    const std::uint8_t before = mine ? cell.write.bytes : 0;
    cell.write = a;
    cell.write.bytes |= before;
    return;
  }
  const Access& older = cell.older_read;
  const bool keep = older.bytes &&
                    (older.thread / 32 != a.thread / 32 || older.block != a.block) &&
                    !clocks_.ordered(older, thread);
  if (!keep && cell.read.bytes && !clocks_.ordered(cell.read, thread))
    cell.older_read = cell.read;
  cell.read = a;
}

void MemoryTracer::find_race(Worker& worker, const Event& e, std::uint32_t site,
                             const Access& other, bool other_wrote) {
  if (found_.count({site, other.site})) return;
  const uint3 t = worker.lanes[other.thread].index;
  const bool same_block = other.block == clocks_.block();
  std::string text = describe(worker, e.address) + "\n  " + actor(worker, e, site) +
                     "\n  thread (" + std::to_string(t.x) + "," + std::to_string(t.y) +
                     "," + std::to_string(t.z) + ") of " +
                     (same_block ? "the same block" : "another block") +
                     (other_wrote ? " wrote at " : " read at ") + sites_[other.site].line();
  if (!same_block)
    text +=
        "\n  blocks run in any order: use atomics and __threadfence(), or a second kernel.";
  else if (other.thread / 32 == worker.current_lane / 32)
    text += "\n  same warp, but no __syncwarp() or __syncthreads() between the two.";
  else
    text += "\n  no __syncthreads() between the two.";
  find(worker,
       !e.write      ? "race (read after write)"
       : other_wrote ? "race (write after write)"
                     : "race (write after read)",
       site, other.site, text);
}

// ---- what intrinsics do

void MemoryTracer::access(Worker& worker, const void* p, std::size_t bytes, bool write,
                          Location loc) {
  on_access(worker, {p, bytes, write, false, nullptr, loc});
}

void MemoryTracer::atomic(Worker& worker, const void* p, std::size_t bytes, Location loc) {
  clocks_.atomic(worker.current_lane, p);
  on_access(worker, {.address = p,
                     .bytes = bytes,
                     .write = true,
                     .atomic = true,
                     .pc = nullptr,
                     .loc = loc,
                     .updates = true});
}

void MemoryTracer::copy_issued(Worker& worker, void* to, std::size_t bytes, Location loc) {
  const Event e{to, bytes, true, false, nullptr, loc, false};
  on_access(worker, e);  // from here on it races with those who still read
  const Target t = locate(worker, e);
  if (!t.shared() || (t.kind == Target::static_shared && t.symbol < 0)) return;
  for (std::size_t b = 0; b < bytes; b += 4) t.cells[(t.offset + b) / 4].defined = 0;
}

void MemoryTracer::copy_made(Worker& worker, void* to, const void* from, std::size_t bytes,
                             std::size_t valid_bytes, Location loc) {
  if (valid_bytes) on_access(worker, {from, valid_bytes, false, false, nullptr, loc});
  on_access(worker, {to, bytes, true, false, nullptr, loc});
}

// ---- order and allocation

void MemoryTracer::launch_begin() {
  ++launch_;
  found_.clear();
  clocks_.begin_launch();
}
void MemoryTracer::block_begin(Worker& worker) {
  prepare_shared(worker);
  clocks_.begin_block(std::uint32_t(worker.block_ordinal), int(worker.lanes.size()));
}
void MemoryTracer::block_end(Worker&) { sites_.end_block(); }
void MemoryTracer::barrier(Worker&) { clocks_.barrier(); }
void MemoryTracer::warp_sync(Worker&, int warp, std::uint32_t mask) {
  clocks_.warp_sync(warp, mask);
}
void MemoryTracer::fence(Worker& worker, bool whole_device) {
  clocks_.fence(worker.current_lane, whole_device);
}
void* MemoryTracer::allocate(std::size_t bytes) { return arena_.allocate(bytes); }
void MemoryTracer::release(void* p) { arena_.release(p); }
void MemoryTracer::host_write(void* p, std::size_t bytes, bool defined) {
  arena_.host_write(p, bytes, defined);
}

}  // namespace emulator
