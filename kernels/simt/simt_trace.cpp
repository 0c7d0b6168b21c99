// simt_trace.cpp - sees every memory access of the kernels. The kernels are compiled with -fsanitize=thread, but the
// program is NOT linked with ThreadSanitizer: the __tsan_* callbacks the compiler emits are defined here (the Linux
// kernel's KCSAN uses the compiler the same way). From the access stream we derive
//   * data races in CUDA terms: same memory, different threads, at least one plain write, no barrier in between
//   * reads of uninitialised shared/global memory, out-of-bounds shared/global accesses
//   * shared-memory bank conflicts and global-memory sectors per warp access, per source line.
#include "simt_internal.hpp"
#include "simt_elf.hpp"
#include <link.h>
#include <sys/mman.h>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

namespace emulator::trace {
using u8 = uint8_t; using u16 = uint16_t; using u32 = uint32_t; using u64 = uint64_t;
enum Space { kShared, kGlobal };

// ---------------------------------------------------------------- shadow: one cell per 4 bytes
struct Access { u64 pc; u32 block, epoch, clk; u16 tid; u8 mask, atomic; };
struct Cell { u64 stamp; Access w, r, r2; u32 r_warps; u8 init, many_blocks; };   // stamp: launch (global) / block (shared)

static constexpr size_t kArena = size_t(1) << 30;
static char* arena; static Cell* gshadow; static size_t arena_used;
static std::map<uintptr_t, size_t> allocs;
static std::vector<Cell> sshadow_dyn, sshadow_tls;
static std::vector<int> tls_sym;                       // TLS offset/4 -> symbol index of a static __shared__ array, or -1
static u64 launch_no, block_no; static const Launch* last_job;
static u32 vc[32][32][32];                             // [warp][lane][other lane]: what this lane has synchronised with
static bool no_stats; static int n_reports; static std::set<std::pair<u64, u64>> seen;

static std::string line_of(u64 pc) {
    pc &= ~(u64(1) << 63);
    static auto& cache = *new std::unordered_map<u64, std::string>;   // never destroyed: used by the atexit report
    auto [it, fresh] = cache.try_emplace(pc); if (!fresh) return it->second;
    u64 base = 0; dl_iterate_phdr([](dl_phdr_info* i, size_t, void* b) { *(u64*)b = i->dlpi_addr; return 1; }, &base);
    char cmd[256], buf[512]; std::string s; snprintf(cmd, sizeof cmd, "addr2line -s -i -e /proc/%d/exe 0x%llx 2>/dev/null", getpid(), (unsigned long long)(pc - 1 - base));
    if (FILE* f = popen(cmd, "r")) {            // innermost inlined frame that is not in the emulator's own headers
        bool found = false;
        while (fgets(buf, sizeof buf, f)) if (!found) { s = buf; s.resize(std::min(s.size(), s.find_first_of("\n ("))); found = !s.starts_with("simt.hpp") && !s.starts_with("cuda_compat.hpp"); }
        pclose(f);
    }
    return it->second = s.empty() ? "?" : s;
}
static std::string what_is(void* p, Space sp) {
    char b[160]; uintptr_t a = (uintptr_t)p; Worker& w = *Worker::current();
    if (sp == kGlobal) { auto it = allocs.upper_bound(a); if (it != allocs.begin()) { --it; snprintf(b, sizeof b, "global memory, byte %zu of a %zu-byte cudaMalloc", a - it->first, it->second); return b; } return "global memory"; }
    if ((unsigned char*)p >= w.dyn_base && (unsigned char*)p < w.dyn_base + kDynSmemCapacity) { snprintf(b, sizeof b, "dynamic __shared__ memory, byte %td of %zu", (unsigned char*)p - w.dyn_base, w.dyn_size); return b; }
    int s = tls_sym[(a - (uintptr_t)tls_base()) / 4]; if (s < 0) return "static __shared__ memory (outside every array)";
    auto& y = tls_symbols()[s]; snprintf(b, sizeof b, ", byte %zu of %zu", a - (uintptr_t)tls_base() - y.offset, y.size); return "__shared__ " + y.name + b;
}
static void say(const char* kind, u64 pc1, u64 pc2, const std::string& text) {
    if (!seen.insert({pc1, pc2}).second) return;
    if (++n_reports <= 20) Worker::current()->report(kind, text);
    std::fputs(last_report().c_str(), config().abort_on_error ? stderr : stdout);
}
static std::string thr(u32 tid, u32 block) {
    auto& L = Worker::current()->lanes[tid].tid; char b[96]; snprintf(b, sizeof b, "thread (%u,%u,%u) of block %u", L.x, L.y, L.z, block); return b;
}
static void race(const char* kind, void* p, Space sp, u64 pc, bool write, u32 tid, u32 block, const Access& o, bool o_write) {
    if (!seen.count({pc, o.pc})) say(kind, pc, o.pc, what_is(p, sp) + "\n  " + thr(tid, block) + (write ? " writes at " : " reads at ") + line_of(pc) + "\n  " + thr(o.tid, o.block) + (o_write ? " wrote at " : " read at ") + line_of(o.pc) +
        (o.block != block ? "\n  different blocks run in any order: use an atomic or a second kernel." : o.tid / 32 == tid / 32 ? "\n  same warp, but no __syncwarp()/__syncthreads() between the two." : "\n  no __syncthreads() between the two."));
}
static bool ordered(const Access& a, u32 tid, u32 block, u32 epoch) {    // does a happen before the current access of tid?
    if (a.block != block) return false;
    if (a.tid == tid || a.epoch != epoch) return true;
    return a.tid / 32 == tid / 32 && vc[tid / 32][tid % 32][a.tid % 32] >= a.clk;
}
static void check(Cell& c, Space sp, char* p, u8 mask, bool write, bool atomic, u64 pc, Worker& w, u64 stamp, u32 block) {
    u32 tid = (u32)w.cur, ep = (u32)w.epoch;
    if (c.stamp != stamp) { u8 keep = sp == kGlobal ? c.init : 0; c = Cell{}; c.init = keep; c.stamp = stamp; }
    if (!write && (c.init & mask) != mask && !atomic) {
        if (!seen.count({pc, 0})) say("uninitialised read", pc, 0, what_is(p, sp) + "\n  " + thr(tid, block) + " reads at " + line_of(pc) + ", nobody has written it" + (sp == kShared ? " in this block" : ""));
        c.init |= mask;
    }
    bool both_atomic = atomic && c.w.atomic;
    if (c.w.mask & mask && !both_atomic && !ordered(c.w, tid, block, ep)) race(write ? "race (write after write)" : "race (read after write)", p, sp, pc, write, tid, block, c.w, true);
    if (write) {
        if (c.r.mask & mask) {
            if (!ordered(c.r, tid, block, ep) && !(atomic && c.r.atomic)) race("race (write after read)", p, sp, pc, true, tid, block, c.r, false);
            else if (c.r2.mask & mask && !ordered(c.r2, tid, block, ep) && !(atomic && c.r2.atomic)) race("race (write after read)", p, sp, pc, true, tid, block, c.r2, false);
        }
        c.w = {pc, block, ep, vc[tid / 32][tid % 32][tid % 32], (u16)tid, (u8)(mask | (c.w.tid == tid && c.w.epoch == ep && c.w.block == block ? c.w.mask : 0)), atomic};
        c.init |= mask;
    } else {
        if (c.r.mask && (c.r.tid != tid || c.r.block != block)) c.r2 = c.r;
        c.r = {pc, block, ep, vc[tid / 32][tid % 32][tid % 32], (u16)tid, mask, atomic};
    }
}

// ---------------------------------------------------------------- warp-level grouping: bank conflicts and sectors
struct Group { u32 mask = 0; u8 size = 0; u64 addr[32]; };
struct Site {
    u64 pc; bool write; Space sp; int sym = -1; u64 requests = 0, actual = 0, ideal = 0, lanes = 0, max1 = 0;
    std::vector<u32> occ; std::vector<std::deque<Group>> open; std::vector<u32> base;
};
static std::unordered_map<u64, std::unique_ptr<Site>> sites;
static void finish(Site& s, Group& g) {
    u64 act = 0, ideal = 0;
    if (s.sp == kGlobal) {
        std::set<u64> sec, bytes4; for (int l = 0; l < 32; ++l) if (g.mask >> l & 1) for (u64 b = 0; b < g.size; b += std::min<u64>(g.size, 4)) sec.insert((g.addr[l] + b) / 32), bytes4.insert((g.addr[l] + b) / 4);
        act = sec.size(); ideal = (bytes4.size() * 4 + 31) / 32; if (g.size < 4) { std::set<u64> e; for (int l = 0; l < 32; ++l) if (g.mask >> l & 1) e.insert(g.addr[l]); ideal = (e.size() * g.size + 31) / 32; }
    } else {
        int lanes_per_phase = g.size <= 4 ? 32 : 128 / g.size;          // 8-byte accesses: half warps, 16-byte: quarter warps
        for (int p = 0; p < 32; p += lanes_per_phase) {
            std::set<u64> words[32]; bool any = false;
            for (int l = p; l < p + lanes_per_phase; ++l) if (g.mask >> l & 1) { any = true; for (u64 b = 0; b < std::max<u64>(g.size, 4); b += 4) { u64 wd = (g.addr[l] + b) / 4; words[wd % 32].insert(wd); } }
            size_t m = 0; for (auto& x : words) m = std::max(m, x.size()); act += m; ideal += any;
        }
    }
    s.requests++; s.actual += act; s.ideal += ideal; s.lanes += (u64)std::popcount(g.mask); s.max1 = std::max(s.max1, act);
}
static void record(Site& s, Worker& w, u64 addr, u8 size) {
    u32 tid = (u32)w.cur, wp = tid / 32, l = tid % 32;
    if (s.occ.size() < w.lanes.size()) { s.occ.resize(w.lanes.size()); s.open.resize(w.warps.size()); s.base.resize(w.warps.size()); }
    u32 k = s.occ[tid]++ - s.base[wp]; auto& q = s.open[wp];
    while (q.size() <= k) q.emplace_back();
    Group& g = q[k]; g.mask |= 1u << l; g.size = size; g.addr[l] = addr;
    u32 full = w.lanes.size() - wp * 32 >= 32 ? ~0u : ~(~0u << (w.lanes.size() - wp * 32));
    while (!q.empty() && q.front().mask == full) { finish(s, q.front()); q.pop_front(); s.base[wp]++; }
}

// ---------------------------------------------------------------- the hook
static void access(void* ptr, size_t size, bool write, bool atomic, u64 pc) {
    Worker* W = Worker::current(); if (!W || !W->job || W->resolving) return;
    Worker& w = *W; char* p = (char*)ptr; Space sp; Cell* cells; size_t off; u64 stamp; int sym = -1;
    if (p >= w.stack_lo && p < w.stack_hi) return;                                                     // registers / local memory
    if (p >= arena && p < arena + kArena) {
        sp = kGlobal; off = (size_t)(p - arena); cells = gshadow; stamp = launch_no;
        auto it = allocs.upper_bound((uintptr_t)p); bool ok = it != allocs.begin() && (--it, (uintptr_t)p + size <= it->first + it->second);
        if (!ok) { say("out-of-bounds global access", pc, 1, what_is(p, sp) + "\n  " + thr((u32)w.cur, 0) + (write ? " writes at " : " reads at ") + line_of(pc)); return; }
    } else if ((unsigned char*)p >= w.dyn_base && (unsigned char*)p < w.dyn_base + kDynSmemCapacity) {
        sp = kShared; off = (size_t)((unsigned char*)p - w.dyn_base); stamp = block_no;
        if (off + size > w.dyn_size) { say("out-of-bounds shared access", pc, 1, what_is(p, sp) + "\n  " + w.describe(w.cur) + (write ? " writes at " : " reads at ") + line_of(pc)); return; }
        cells = sshadow_dyn.data();
    } else {
        size_t o = (size_t)(p - tls_base()); if (o >= tls_sym.size() * 4) return;
        sym = tls_sym[o / 4]; auto& site = sites[pc];
        if (sym < 0) { if (site && site->sym >= 0) say("out-of-bounds shared access", pc, 1, what_is(p, kShared) + " - expected " + tls_symbols()[site->sym].name + "\n  " + w.describe(w.cur) + (write ? " writes at " : " reads at ") + line_of(pc)); return; }
        if (site && site->sym >= 0 && site->sym != sym) { say("out-of-bounds shared access", pc, 1, what_is(p, kShared) + " - expected " + tls_symbols()[site->sym].name + "\n  " + w.describe(w.cur) + (write ? " writes at " : " reads at ") + line_of(pc)); return; }
        sp = kShared; off = o; stamp = block_no; cells = sshadow_tls.data();
    }
    if ((size & (size - 1)) == 0 && size <= 16 && ((uintptr_t)p & (size - 1))) { say("misaligned access", pc, 2, what_is(p, sp) + "\n  " + thr((u32)w.cur, 0) + (write ? " writes " : " reads ") + std::to_string(size) + " bytes at " + line_of(pc) + " (a GPU traps)"); return; }
    u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    for (size_t b = 0; b < size;) {
        size_t g = (off + b) / 4, in = (off + b) % 4, n = std::min(size - b, 4 - in);
        check(cells[g], sp, p + b, (u8)(((1u << n) - 1) << in), write, atomic, pc, w, stamp, block); b += n;
    }
    if (!atomic && !no_stats) { auto& s = sites[pc]; if (!s) { s = std::make_unique<Site>(); s->pc = pc; s->write = write; s->sp = sp; s->sym = sym; } record(*s, w, (u64)p - (sp == kShared && sym < 0 ? (u64)w.dyn_base : 0), (u8)std::min<size_t>(size, 16)); }
}

static void report_sites() {
    if (!getenv("SIMT_STATS") || sites.empty()) return;
    struct Row { std::string line; bool w; Space sp; u64 req, act, ideal, mx; double lanes; };
    std::map<std::string, Row> rows;
    for (auto& [pc, s] : sites) if (s && s->requests) {
        auto line = line_of(pc); auto key = line + (s->write ? "w" : "r") + (s->sp == kShared ? "s" : "g");
        auto& r = rows.try_emplace(key, Row{line, s->write, s->sp, 0, 0, 0, 0, 0}).first->second;
        r.req += s->requests; r.act += s->actual; r.ideal += s->ideal; r.mx = std::max(r.mx, s->max1); r.lanes += (double)s->lanes;
    }
    std::printf("%-18s %-6s %-6s %10s %6s  %s\n", "line", "space", "access", "warp-reqs", "lanes", "cost per warp request");
    for (auto& [k, r] : rows)
        if (r.sp == kGlobal) std::printf("%-18s %-6s %-6s %10llu %6.1f  %.2f sectors (ideal %.2f) = %3.0f %% of the bytes moved are used\n", r.line.c_str(), "global", r.w ? "write" : "read", (unsigned long long)r.req, r.lanes / r.req, (double)r.act / r.req, (double)r.ideal / r.req, 100.0 * r.ideal / r.act);
        else std::printf("%-18s %-6s %-6s %10llu %6.1f  %.2f wavefronts (ideal %.2f)%s\n", r.line.c_str(), "shared", r.w ? "write" : "read", (unsigned long long)r.req, r.lanes / r.req, (double)r.act / r.req, (double)r.ideal / r.req, r.act > r.ideal ? "  <- bank conflicts" : "");
}

static const bool installed = [] {
    arena = (char*)mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    gshadow = (Cell*)mmap(nullptr, kArena / 4 * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    trace_hooks.alloc = [](size_t n) -> void* { char* p = arena + arena_used; arena_used += (n + 511) / 256 * 256; allocs[(uintptr_t)p] = n; return p; };
    trace_hooks.host_write = [](void* p, size_t n) { for (size_t i = 0; i < n; ++i) { size_t o = (size_t)((char*)p + i - arena); gshadow[o / 4].init |= (u8)(1u << o % 4); } };
    trace_hooks.async = [](void* p, size_t n, bool wr, u64 pc) { if (n) access(p, n, wr, false, pc); };
    trace_hooks.async_issue = [](void* p, size_t n, u64 pc) {      // from here on the destination is undefined
        Worker& w = *Worker::current(); bool dyn = (unsigned char*)p >= w.dyn_base && (unsigned char*)p < w.dyn_base + kDynSmemCapacity;
        no_stats = true; access(p, n, true, false, pc); no_stats = false; auto& v = dyn ? sshadow_dyn : sshadow_tls; size_t o = (size_t)((char*)p - (dyn ? (char*)w.dyn_base : tls_base()));
        for (size_t g = o / 4; g < (o + n) / 4 && g < v.size(); ++g) v[g].init = 0;
    };
    trace_hooks.block_begin = [](Worker& w) {
        if (w.job != last_job || block_no == 0 || (blockIdx.x | blockIdx.y | blockIdx.z) == 0) { ++launch_no; last_job = w.job; }
        ++block_no;
        if (sshadow_dyn.empty()) {
            sshadow_dyn.resize(kDynSmemCapacity / 4); size_t hi = 0; for (auto& s : tls_symbols()) hi = std::max(hi, s.offset + s.size);
            tls_sym.assign(hi / 4 + 1, -1); sshadow_tls.resize(hi / 4 + 1);
            for (size_t i = 0; i < tls_symbols().size(); ++i) { auto& s = tls_symbols()[i]; if (s.local) for (size_t o = s.offset; o < s.offset + s.size; ++o) tls_sym[o / 4] = (int)i; }
        }
        for (auto& a : vc) for (int i = 0; i < 32; ++i) { std::memset(a[i], 0, sizeof a[i]); a[i][i] = 1; }
    };
    trace_hooks.block_end = [](Worker&) { for (auto& [pc, s] : sites) if (s) { for (auto& q : s->open) { for (auto& g : q) if (g.mask) finish(*s, g); q.clear(); } std::fill(s->occ.begin(), s->occ.end(), 0); std::fill(s->base.begin(), s->base.end(), 0); } };
    trace_hooks.warp = [](Worker&, int wp, uint32_t mask) {
        u32 m[32] = {}; auto& v = vc[wp];
        for (int l = 0; l < 32; ++l) if (mask >> l & 1) for (int k = 0; k < 32; ++k) m[k] = std::max(m[k], v[l][k]);
        for (int l = 0; l < 32; ++l) if (mask >> l & 1) { std::memcpy(v[l], m, sizeof m); v[l][l] = m[l] + 1; }
    };
    std::atexit(report_sites);
    return true;
}();
}  // namespace emulator::trace

// ---------------------------------------------------------------- compiler callbacks
#define PC ((uint64_t)__builtin_return_address(0))
#define RW(n) extern "C" void __tsan_read##n(void* p) { ::emulator::trace::access(p, n, false, false, PC); } extern "C" void __tsan_write##n(void* p) { ::emulator::trace::access(p, n, true, false, PC); } \
              extern "C" void __tsan_unaligned_read##n(void* p) { ::emulator::trace::access(p, n, false, false, PC); } extern "C" void __tsan_unaligned_write##n(void* p) { ::emulator::trace::access(p, n, true, false, PC); } \
              extern "C" void __tsan_volatile_read##n(void* p) { ::emulator::trace::access(p, n, false, true, PC); } extern "C" void __tsan_volatile_write##n(void* p) { ::emulator::trace::access(p, n, true, true, PC); }
RW(1) RW(2) RW(4) RW(8) RW(16)
extern "C" void __tsan_read_range(void* p, size_t n) { ::emulator::trace::access(p, n, false, false, PC); }
extern "C" void __tsan_write_range(void* p, size_t n) { ::emulator::trace::access(p, n, true, false, PC); }
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_vptr_update(void*, void*) {}
extern "C" void __tsan_vptr_read(void*) {}
#define AT(bits, T) \
    extern "C" T __tsan_atomic##bits##_load(const volatile T* p, int) { ::emulator::trace::access((void*)p, sizeof(T), false, true, PC); return __atomic_load_n(p, 5); } \
    extern "C" void __tsan_atomic##bits##_store(volatile T* p, T v, int) { ::emulator::trace::access((void*)p, sizeof(T), true, true, PC); __atomic_store_n(p, v, 5); } \
    extern "C" T __tsan_atomic##bits##_exchange(volatile T* p, T v, int) { ::emulator::trace::access((void*)p, sizeof(T), true, true, PC); return __atomic_exchange_n(p, v, 5); } \
    extern "C" T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int) { ::emulator::trace::access((void*)p, sizeof(T), true, true, PC); return __atomic_fetch_add(p, v, 5); } \
    extern "C" int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* c, T v, int, int) { ::emulator::trace::access((void*)p, sizeof(T), true, true, PC); return __atomic_compare_exchange_n(p, c, v, false, 5, 5); } \
    extern "C" T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T c, T v, int, int) { ::emulator::trace::access((void*)p, sizeof(T), true, true, PC); __atomic_compare_exchange_n(p, &c, v, false, 5, 5); return c; } \
    extern "C" int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* c, T v, int, int) { ::emulator::trace::access((void*)p, sizeof(T), true, true, PC); return __atomic_compare_exchange_n(p, c, v, true, 5, 5); }
AT(32, int) AT(64, long long) AT(8, char)
