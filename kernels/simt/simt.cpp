// simt.cpp - the SIMT emulator's runtime: fibers, block scheduler, warp collectives, device heap, diagnostics.
// Build flavours:  (none) | -fsanitize=address,undefined | SIMT_TSAN (real ThreadSanitizer) | SIMT_TRACE (own hooks)
#include "simt.hpp"
#include "simt_internal.hpp"
#include "simt_elf.hpp"
#include <sys/mman.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>
#if defined(SIMT_UCONTEXT)
#include <ucontext.h>
#elif defined(SIMT_BOOST)
#include <boost/context/detail/fcontext.hpp>
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SIMT_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_acquire(void*); 
extern "C" void __tsan_release(void*);
extern "C" void AnnotateIgnoreReadsBegin(const char*, int); extern "C" void AnnotateIgnoreReadsEnd(const char*, int);
extern "C" void AnnotateIgnoreWritesBegin(const char*, int); extern "C" void AnnotateIgnoreWritesEnd(const char*, int);
#endif

namespace emulator {
// libtsan intercepts memcpy/memset/new even in uninstrumented code: hide the scheduler's own bookkeeping from it.
struct TsanIgnore {
#ifdef SIMT_TSAN
    TsanIgnore() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
    ~TsanIgnore() { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
    TsanIgnore() {}
#endif
};
static Config g_config;
Config& config() { return g_config; }
static std::string g_report;
static cudaError_t g_last = cudaSuccess;
static std::mutex g_mu;
const std::string& last_report() { return g_report; }
Counters& counters() { static Counters c; return c; }

// ================================================================ context switch
// Only the callee-saved registers and the stack pointer change hands: ~10 ns. swapcontext() costs ~220 ns because
// it also saves the signal mask with a system call.
#if defined(SIMT_UCONTEXT)
struct Context { ucontext_t uc; };
static void ctx_make(Context& c, char* lo, size_t size, void (*fn)()) {
    getcontext(&c.uc); c.uc.uc_stack.ss_sp = lo; c.uc.uc_stack.ss_size = size; c.uc.uc_link = nullptr; makecontext(&c.uc, fn, 0);
}
static inline void ctx_swap(Context& from, Context& to) { swapcontext(&from.uc, &to.uc); }
#elif defined(SIMT_BOOST)
namespace bcd = boost::context::detail;
struct Context { bcd::fcontext_t fc; void (*fn)(); };
static void ctx_entry(bcd::transfer_t t) { static_cast<Context*>(t.data)->fc = t.fctx; Worker::current()->boot(); }
static void ctx_make(Context& c, char* lo, size_t size, void (*fn)()) { c.fn = fn; c.fc = bcd::make_fcontext(lo + size, size, ctx_entry); }
static inline void ctx_swap(Context& from, Context& to) {
    bcd::transfer_t t = bcd::jump_fcontext(to.fc, &from);       // resumed later by somebody else...
    static_cast<Context*>(t.data)->fc = t.fctx;                  // ...whose own context we must store for it
}
#elif defined(__x86_64__)
extern "C" void simt_swap(void** save_sp, void* load_sp);
asm(R"(
.text
.globl simt_swap
.type simt_swap,@function
simt_swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size simt_swap,.-simt_swap
)");
struct Context { void* sp; };
static void ctx_make(Context& c, char* lo, size_t size, void (*fn)()) {
    auto** p = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(lo) + size) & ~uintptr_t(15));
    *--p = nullptr; *--p = reinterpret_cast<void*>(fn);
    for (int i = 0; i < 6; ++i) *--p = nullptr;
    c.sp = p;
}
static inline void ctx_swap(Context& from, Context& to) { simt_swap(&from.sp, to.sp); }
#elif defined(__aarch64__)
extern "C" void simt_swap(void** save_sp, void* load_sp);
asm(R"(
.text
.globl simt_swap
.type simt_swap,%function
simt_swap:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size simt_swap,.-simt_swap
)");
struct Context { void* sp; };
static void ctx_make(Context& c, char* lo, size_t size, void (*fn)()) {
    auto** p = reinterpret_cast<void**>(((reinterpret_cast<uintptr_t>(lo) + size) & ~uintptr_t(15)) - 160);
    std::memset(p, 0, 160); p[11] = reinterpret_cast<void*>(fn);      // x30
    c.sp = p;
}
static inline void ctx_swap(Context& from, Context& to) { simt_swap(&from.sp, to.sp); }
#else
#error "no context switch for this CPU: build with -DSIMT_UCONTEXT"
#endif

struct Fiber {
    Context ctx{}; char* lo = nullptr; size_t size = 0;
    void* fake = nullptr;                     // ASan fake stack
    void* tsan = nullptr;
};

// ================================================================ a worker: executes blocks one at a time
thread_local Worker* tls_worker = nullptr;
Worker* Worker::current() { return tls_worker; }

struct WorkerImpl final : Worker {
    std::vector<Fiber> fibers; std::vector<int> free_fibers;
    Fiber main_fiber;                         // the worker's own stack
    char* slab = nullptr; size_t slab_n = 0, stride = 0;
    std::vector<int> ready; size_t rhead = 0; // FIFO of runnable lanes (capacity reused)
    std::vector<int> start_order; int started = 0;
    uint64_t rng = 1;

    ~WorkerImpl() { if (slab) munmap(slab, slab_n); }
    uint64_t rnd() { rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17; return rng; }

    void prepare(int n) {
        if (!slab) {
            stride = config().stack_bytes; slab_n = 1024 * (stride + 4096);
            slab = (char*)mmap(nullptr, slab_n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            stack_lo = slab; stack_hi = slab + slab_n;
        }
        lanes.resize(n); state.resize(n); fiber.resize(n); warps.resize((n + 31) / 32); fibers.reserve(1024);   // suspended contexts must not move
        free_fibers.reserve(1024); if (ready.capacity() < 8192) ready.reserve(8192);
#ifdef SIMT_TSAN
        while ((int)fibers.size() < n) new_fiber();               // created by the scheduler: creation is a happens-before edge
#endif
        // no allocation while fibers run (TSan intercepts new/delete)
    }
    int get_fiber([[maybe_unused]] int lane) {
#ifdef SIMT_TSAN
        return lane;                                              // TSan: one logical thread per CUDA thread
#endif
        if (!free_fibers.empty()) { int f = free_fibers.back(); free_fibers.pop_back(); return f; }
        return new_fiber();
    }
    int new_fiber() {
        int i = (int)fibers.size(); fibers.emplace_back();
        Fiber& f = fibers.back();
        f.lo = slab + (size_t)i * (stride + 4096) + 4096;
        mprotect(f.lo - 4096, 4096, PROT_NONE);                  // guard page: stack overflow = SIGSEGV, not corruption
        f.size = stride - (i % 61) * 192;                         // stack colouring (cache sets)
        init_fiber(f);
        return i;
    }
    void init_fiber(Fiber& f) {
        ctx_make(f.ctx, f.lo, f.size, [] { tls_worker->boot(); });
#ifdef SIMT_ASAN
        __asan_unpoison_memory_region(f.lo, stride); f.fake = nullptr;
#endif
#ifdef SIMT_TSAN
        if (f.tsan) __tsan_destroy_fiber(f.tsan);
        f.tsan = __tsan_create_fiber(0);
#endif
    }
    void switch_ctx(Fiber& from, Fiber& to, bool dying = false) {
        ++n_switch;
#ifdef SIMT_ASAN
        __sanitizer_start_switch_fiber(dying ? nullptr : &from.fake, to.lo, to.size);
#endif
        (void)dying;
#ifdef SIMT_TSAN
        __tsan_switch_to_fiber(to.tsan, __tsan_switch_to_fiber_no_sync);
#endif
        ctx_swap(from.ctx, to.ctx);
#ifdef SIMT_ASAN
        const void* b; size_t s; __sanitizer_finish_switch_fiber(from.fake, &b, &s);
#endif
    }
    void boot() override {                    // first instruction of every fiber
#ifdef SIMT_ASAN
        const void* b; size_t s; __sanitizer_finish_switch_fiber(nullptr, &b, &s);
        if (!main_fiber.size) { main_fiber.lo = (char*)b; main_fiber.size = s; }
#endif
        fiber_loop();
    }
    // Runs CUDA threads until it has to hand the CPU to a thread that already owns another fiber. A kernel without
    // barriers therefore never switches: the whole block runs as a loop on one stack.
    void fiber_loop() {
        for (;;) {
            int self = fiber[cur];
#ifdef SIMT_TSAN
            __tsan_acquire(&start_sync);
#endif
            job->thunk(job->args);
#ifdef SIMT_TSAN
            __tsan_release(&end_sync);
#endif
            lane_exit();
            int nx = live ? next_lane() : -1;
            if (nx >= 0 && fiber[nx] < 0) {
#ifdef SIMT_TSAN
                fiber[nx] = get_fiber(nx); enter(nx); switch_ctx(fibers[self], fibers[nx]); continue;
#endif
                fiber[nx] = self; enter(nx); continue;
            }
#ifndef SIMT_TSAN
            free_fibers.push_back(self);
#endif
            if (nx >= 0) { enter(nx); switch_ctx(fibers[self], fibers[fiber[nx]]); }
            else {
                if (live) report_deadlock();
                switch_ctx(fibers[self], main_fiber);
            }
        }
    }
    void enter(int i) { cur = i; threadIdx = lanes[i].tid; }
    int next_lane() {
        TsanIgnore hide;
        if (g_config.order == Order::greedy && !eager.empty()) { int i = eager.back(); eager.pop_back(); return i; }
        if (g_config.order == Order::random) {
            size_t nr = ready.size() - rhead, nu = start_order.size() - started;
            if (nr + nu == 0) return -1;
            size_t k = rnd() % (nr + nu);
            if (k < nr) { std::swap(ready[rhead], ready[rhead + k]); return ready[rhead++]; }
            std::swap(start_order[started], start_order[started + k - nr]); return start_order[started++];
        }
        if (rhead < ready.size()) return ready[rhead++];
        if (started < (int)start_order.size()) return start_order[started++];
        return -1;
    }
    std::vector<int> eager;                   // greedy: lanes released by a warp collective run first, so one warp races ahead
    void make_ready(int i, bool warp = false) {
        TsanIgnore hide;
        if (warp && g_config.order == Order::greedy) { state[i] = Lane::ready; eager.push_back(i); return; }
        if (rhead > 4096) { ready.erase(ready.begin(), ready.begin() + (long)rhead); rhead = 0; }
        state[i] = Lane::ready; ready.push_back(i);
    }
    void wait() override {                    // current lane is blocked (or queued): run somebody else
        int me = cur, nx = next_lane();
        if (nx < 0) { report_deadlock(); bail(); }
        if (nx == me) { state[me] = Lane::running; return; }
        if (fiber[nx] < 0) fiber[nx] = get_fiber(nx);
        int f = fiber[me]; enter(nx); state[nx] = Lane::running;
        switch_ctx(fibers[f], fibers[fiber[nx]]);
    }
    void yield_lane() override { make_ready(cur); wait(); }
    [[noreturn]] void bail() override {       // abandon the block: kernels hold no resources, stacks are re-made
        failed = true; switch_ctx(fibers[fiber[cur]], main_fiber, true); std::abort();
    }
    void lane_exit() {
        Lane& L = lanes[cur]; state[cur] = Lane::done; --live;
        if (!L.pending_async.empty()) { L.pending_async.clear(); L.groups = 0; }
        Warp& w = warps[cur >> 5]; w.exited |= 1u << (cur & 31);
        for (int l = 0; w.waiting && l < 32; ++l) if (w.waiting >> l & 1) try_complete(cur >> 5, lanes[(cur & ~31) + l].mask, -1);
        if (live && bar.arrived == live) release_barrier();
    }
    // ------------------------------------------------------------ barrier
    struct { int arrived = 0, votes = 0; Loc loc; int first = 0, result = 0; BlockOp op{}; } bar;
    int barrier(BlockOp op, int pred, Loc loc) override {
        if (bar.arrived == 0) { bar.loc = loc; bar.first = cur; bar.votes = 0; bar.op = op; }
        else if (!same(bar.loc, loc) || bar.op != op)
            fail("barrier divergence", describe(bar.first) + " waits at " + where(bar.loc) + "\n  but " + describe(cur) + " arrived at " + where(loc) +
                 "\n  __syncthreads() must be reached by all threads of the block at the same place.");
        ++bar.arrived; bar.votes += pred != 0; state[cur] = Lane::at_block;
#ifdef SIMT_TSAN
        __tsan_release(&bar_sync[epoch & 1]);
#endif
        uint64_t e = epoch;
        if (bar.arrived == live) { release_barrier(); }
        wait_released(e);
#ifdef SIMT_TSAN
        __tsan_acquire(&bar_sync[e & 1]);
#endif
        return op == BlockOp::count ? bar.result : op == BlockOp::all ? bar.result == bar_live : bar.result != 0;
    }
    int bar_live = 0; char bar_sync[2]{}, start_sync{}, end_sync{};
    void wait_released(uint64_t) { wait(); }
    void release_barrier() {
        TsanIgnore hide;
        bar.result = bar.votes; bar_live = live; bar.arrived = 0; ++epoch; ++n_barrier;
        if (trace_hooks.barrier) trace_hooks.barrier(*this);
        int n = (int)lanes.size();
        if (live == n && g_config.order == Order::forward && rhead == ready.size()) {     // everybody waits: thread order
            ready = start_order; rhead = 0; std::memset(state.data(), Lane::ready, (size_t)n);
        } else if (g_config.order == Order::reverse) { for (int i = n; i-- > 0;) if (state[i] == Lane::at_block) make_ready(i); }
        else for (int i = 0; i < n; ++i) if (state[i] == Lane::at_block) make_ready(i);
    }
    // ------------------------------------------------------------ warp collectives
    void collective(uint32_t mask, const char* name, Resolver r, WarpCall& c, Loc loc, bool same_site) override {
        int me = cur, l = me & 31; Lane& L = lanes[me]; Warp& w = warps[me >> 5];
        if (!(mask >> l & 1)) fail("bad warp mask", describe(me) + " calls " + name + " at " + where(loc) + " with mask " + hex(mask) + " that does not contain its own lane " + std::to_string(l));
        L.mask = mask; L.resolver = r; L.call = &c; L.loc = loc; L.what = name; L.same_site = same_site; state[me] = Lane::at_warp;
        w.waiting |= 1u << l; ++n_warp;
#ifdef SIMT_TSAN
        if (r == resolve_sync) __tsan_release(&w);
#endif
        if (try_complete(me >> 5, mask, me)) state[me] = Lane::running; else wait();
#ifdef SIMT_TSAN
        if (r == resolve_sync) __tsan_acquire(&w);
#endif
    }
    bool try_complete(int wi, uint32_t mask, int me) {
        Warp& w = warps[wi]; int base = wi * 32;
        uint32_t need = mask & ~w.exited;
        if (!need || (w.waiting & need) != need) return false;
        WarpCall* calls[32] = {}; int first = -1;
        for (int l = 0; l < 32; ++l) if (need >> l & 1) {
            Lane& L = lanes[base + l];
            if (first < 0) first = base + l;
            Lane& F = lanes[first];
            if (L.resolver != F.resolver || L.mask != F.mask || (L.same_site && !same(L.loc, F.loc)))
                fail("warp divergence", describe(first) + ": " + F.what + " mask " + hex(F.mask) + " at " + where(F.loc) + "\n  " + describe(base + l) + ": " + L.what + " mask " + hex(L.mask) + " at " + where(L.loc) +
                     "\n  all lanes named in the mask must execute the same intrinsic with the same mask.");
            calls[l] = L.call;
        }
        w.waiting &= ~need;
        TsanIgnore hide;                          // the resolver reads and writes other lanes' operands on purpose
        resolving = true; lanes[first].resolver(calls, need); resolving = false;
        if (trace_hooks.warp && lanes[first].resolver == resolve_sync) trace_hooks.warp(*this, wi, need);
        if (g_config.order == Order::reverse) { for (int l = 32; l-- > 0;) if ((need >> l & 1) && base + l != me) make_ready(base + l, true); }
        else if (g_config.order == Order::greedy) { for (int l = 32; l-- > 0;) if ((need >> l & 1) && base + l != me) make_ready(base + l, true); }
        else for (int l = 0; l < 32; ++l) if ((need >> l & 1) && base + l != me) make_ready(base + l);
        return true;
    }
    // ------------------------------------------------------------ diagnostics
    static bool same(const Loc& a, const Loc& b) { return a.line == b.line && !std::strcmp(a.file, b.file); }
    static std::string where(const Loc& l) { return std::string(l.file) + ":" + std::to_string(l.line); }
    static std::string hex(uint32_t m) { char b[16]; snprintf(b, sizeof b, "0x%08x", m); return b; }
    std::string describe(int i) const override {
        char b[96]; snprintf(b, sizeof b, "thread (%u,%u,%u) of block (%u,%u,%u)", lanes[i].tid.x, lanes[i].tid.y, lanes[i].tid.z, blockIdx.x, blockIdx.y, blockIdx.z); return b;
    }
    void report(const char* kind, const std::string& msg) override {
        std::lock_guard g(g_mu);
        g_report = std::string("SIMT ERROR: ") + kind + "\n  " + msg + "\n"; g_last = cudaErrorLaunchFailure; failed = true;
        if (config().abort_on_error) { std::fputs(g_report.c_str(), stderr); std::abort(); }
    }
    [[noreturn]] void fail(const char* kind, const std::string& msg) { report(kind, msg); bail(); __builtin_unreachable(); }
    void report_deadlock() {
        std::map<std::string, std::pair<int, int>> groups;       // place -> (count, example)
        for (int i = 0; i < (int)lanes.size(); ++i) if (state[i] == Lane::at_block || state[i] == Lane::at_warp) {
            bool wp = state[i] == Lane::at_warp;
            std::string k = (wp ? std::string(lanes[i].what) + " mask " + hex(lanes[i].mask) : "__syncthreads") + " at " + where(wp ? lanes[i].loc : bar.loc);
            auto [it, fresh] = groups.try_emplace(k, 0, i); ++it->second.first;
        }
        std::string s = "no thread of the block can make progress (a real GPU would hang):";
        for (auto& [k, v] : groups) s += "\n    " + std::to_string(v.first) + " thread(s) wait in " + k + ", e.g. " + describe(v.second);
        report("deadlock", s);
    }
    // ------------------------------------------------------------ one block
    void run_block(const Launch& li, uint3 b) {
        int n = (int)(li.block.x * li.block.y * li.block.z);
        prepare(n); job = &li; blockIdx = b; blockDim = li.block; gridDim = li.grid; cur = 0; live = n; ++epoch; failed = false;
        bar.arrived = 0; ready.clear(); eager.clear(); eager.reserve(1024); rhead = 0; started = 0;
        for (int i = 0; i < n; ++i) {
            Lane& L = lanes[i]; state[i] = Lane::idle; fiber[i] = -1; L.groups = 0; L.pending_async.clear();
            L.tid = {i % li.block.x, i / li.block.x % li.block.y, i / (li.block.x * li.block.y)};
        }
        for (size_t w = 0; w < warps.size(); ++w) { warps[w].waiting = 0; int m = n - (int)w * 32; warps[w].exited = m >= 32 ? 0u : ~0u << m; }
        if (!(start_order.size() == (size_t)n && g_config.order == last_order && last_order != Order::random)) {
            start_order.resize(n);
            for (int i = 0; i < n; ++i) start_order[i] = g_config.order == Order::reverse ? n - 1 - i : i;
            last_order = g_config.order;
        }
        shared_begin(li.smem);
        if (trace_hooks.block_begin) trace_hooks.block_begin(*this);
#ifdef SIMT_TSAN
        __tsan_release(&start_sync);
        if (!main_fiber.tsan) main_fiber.tsan = __tsan_get_current_fiber();
#endif
        int first = next_lane(); fiber[first] = get_fiber(first); enter(first);
        switch_ctx(main_fiber, fibers[fiber[first]]);
#ifdef SIMT_TSAN
        __tsan_acquire(&end_sync);
#endif
        if (trace_hooks.block_end) trace_hooks.block_end(*this);
        if (failed) { free_fibers.clear(); for (int i = 0; i < (int)fibers.size(); ++i) { init_fiber(fibers[i]); free_fibers.push_back(i); } }
        shared_end();
        n_blocks++; n_threads += n;
    }
    Order last_order = Order::random;
    void shared_begin(size_t dyn) {
        auto [p, cap] = dynamic_smem(); dyn_base = p; dyn_size = dyn; if (!p) return;
#ifdef SIMT_ASAN
        __asan_unpoison_memory_region(p, cap); __asan_poison_memory_region(p + (dyn + 7) / 8 * 8, cap - (dyn + 7) / 8 * 8);
#endif
        if (config().poison) { std::memset(p, 0xFF, dyn); for (auto [q, s] : static_shared()) std::memset(q, 0xFF, s); }
    }
    void shared_end() {
#ifdef SIMT_ASAN
        if (dyn_base) __asan_unpoison_memory_region(dyn_base, dynamic_smem().second);
#endif
    }
};

TraceHooks trace_hooks;

// ================================================================ thin forwarding API
static Worker& W() { if (!tls_worker) { std::fputs("SIMT ERROR: device function called from host code\n", stderr); std::abort(); } return *tls_worker; }
int block_barrier(BlockOp op, int p, Loc l) { return static_cast<WorkerImpl&>(W()).barrier(op, p, l); }
void warp_collective(uint32_t m, const char* n, Resolver r, WarpCall& c, Loc l, bool s) {
    WorkerImpl& w = static_cast<WorkerImpl&>(W()); w.collective(m, n, r, c, l, s);
    if (c.width < 0) device_fail("shuffle from inactive lane", w.describe(w.cur) + ": " + n + " at " + l.file + ":" + std::to_string(l.line) + " reads lane " + std::to_string(c.arg) + " which is not in mask or has exited");
}
uint32_t warp_live_mask() { Worker& w = W(); return ~w.warps[w.cur >> 5].exited; }
int lane_id() { return W().cur & 31; }
void device_fail(const char* k, const std::string& m) { Worker& w = W(); w.report(k, m); w.bail(); __builtin_unreachable(); }
void yield() { if (tls_worker) tls_worker->yield_lane(); }

static void shfl_fill(WarpCall* (&l)[32], uint32_t mask, int (*src)(int lane, const WarpCall&)) {
    uint64_t out[32];
    for (int i = 0; i < 32; ++i) if (mask >> i & 1) {
        int s = src(i, *l[i]);
        if (!(mask >> s & 1)) { l[i]->arg = s; l[i]->width = -1; out[i] = ~0ull; } else out[i] = l[s]->in;
    }
    for (int i = 0; i < 32; ++i) if (mask >> i & 1) l[i]->out = out[i];
}
void resolve_sync(WarpCall* (&)[32], uint32_t) {}
void resolve_shfl_idx(WarpCall* (&l)[32], uint32_t m) { shfl_fill(l, m, [](int i, const WarpCall& c) { return (i & ~(c.width - 1)) + (c.arg & (c.width - 1)); }); }
void resolve_shfl_up(WarpCall* (&l)[32], uint32_t m) { shfl_fill(l, m, [](int i, const WarpCall& c) { int s = i - c.arg; return s < (i & ~(c.width - 1)) ? i : s; }); }
void resolve_shfl_down(WarpCall* (&l)[32], uint32_t m) { shfl_fill(l, m, [](int i, const WarpCall& c) { int s = i + c.arg; return s >= (i & ~(c.width - 1)) + c.width ? i : s; }); }
void resolve_shfl_xor(WarpCall* (&l)[32], uint32_t m) { shfl_fill(l, m, [](int i, const WarpCall& c) { int s = i ^ c.arg; return s >= (i & ~(c.width - 1)) + c.width ? i : s; }); }
void resolve_ballot(WarpCall* (&l)[32], uint32_t m) { uint32_t b = 0; for (int i = 0; i < 32; ++i) if (m >> i & 1) b |= (uint32_t)l[i]->in << i; for (int i = 0; i < 32; ++i) if (m >> i & 1) l[i]->out = b; }
void resolve_reduce_add(WarpCall* (&l)[32], uint32_t m) { uint32_t b = 0; for (int i = 0; i < 32; ++i) if (m >> i & 1) b += (uint32_t)l[i]->in; for (int i = 0; i < 32; ++i) if (m >> i & 1) l[i]->out = b; }

void note_read(const void* p, size_t n) { if (trace_hooks.async) trace_hooks.async((void*)p, n, false, (uint64_t)__builtin_return_address(0)); }
// ---------------------------------------------------------------- cp.async: copy at the wait, poison until then
void cp_async(void* d, const void* s, size_t n, size_t sn) {
    Lane& L = W().lanes[W().cur];
    if ((n != 4 && n != 8 && n != 16) || ((uintptr_t)d | (uintptr_t)s) % n) device_fail("cp.async", "size must be 4, 8 or 16 and both addresses aligned to it");
    std::memset(d, 0xFF, n); if (trace_hooks.async_issue) trace_hooks.async_issue(d, n, (uint64_t)__builtin_return_address(0) | uint64_t(1) << 63);
    TsanIgnore hide; L.pending_async.push_back({d, s, n, sn, L.groups, (uint64_t)__builtin_return_address(0)});
}
void cp_async_commit() { ++W().lanes[W().cur].groups; }
void cp_async_wait(int pending) {
    Lane& L = W().lanes[W().cur]; size_t k = 0;
    for (; k < L.pending_async.size() && (int)(L.groups - L.pending_async[k].group) > pending; ++k) {
        auto& a = L.pending_async[k];
        std::memcpy(a.d, a.s, a.sn); std::memset((char*)a.d + a.sn, 0, a.n - a.sn);
        if (trace_hooks.async) { trace_hooks.async((void*)a.s, a.sn, false, a.pc); trace_hooks.async(a.d, a.n, true, a.pc | uint64_t(1) << 63); }   // bit 63: separate access site, same line
    }
    L.pending_async.erase(L.pending_async.begin(), L.pending_async.begin() + (long)k);
}

// ================================================================ device heap
static std::map<uintptr_t, size_t>& heap() { static std::map<uintptr_t, size_t> m; return m; }
bool is_device_pointer(const void* p) {
    std::lock_guard g(g_mu); auto it = heap().upper_bound((uintptr_t)p); if (it == heap().begin()) return false;
    --it; return (uintptr_t)p < it->first + std::max<size_t>(it->second, 1);
}
bool check_pointer_arg(const void* p, int i) {
    if (!p || is_device_pointer(p)) return true;
    g_report = "SIMT ERROR: host pointer passed to a kernel\n  argument " + std::to_string(i) + " does not point into memory from cudaMalloc\n"; g_last = cudaErrorInvalidValue;
    if (config().abort_on_error) { std::fputs(g_report.c_str(), stderr); std::abort(); }
    return false;
}
size_t& dynamic_smem_limit(const void* k) { static std::unordered_map<const void*, size_t> m; auto [it, f] = m.try_emplace(k, 48 * 1024); return it->second; }
static std::pair<SmemFn, size_t>& smem_reg() { static std::pair<SmemFn, size_t> r{nullptr, 0}; return r; }
bool set_dynamic_smem(SmemFn f, size_t cap) { smem_reg() = {f, cap}; return true; }
std::pair<unsigned char*, size_t> dynamic_smem() { auto& r = smem_reg(); return {r.first ? r.first() : nullptr, r.second}; }

// ================================================================ worker pool and launch
struct Pool {
    struct Th { std::unique_ptr<WorkerImpl> w; std::thread t; };
    std::vector<Th> th; std::mutex m; std::condition_variable cv, done;
    const Launch* job = nullptr; uint64_t gen = 0; int left = 0; std::atomic<uint64_t> next{0}; std::atomic<bool> failed{false}; bool stop = false;
    ~Pool() { { std::lock_guard g(m); stop = true; } cv.notify_all(); for (auto& t : th) t.t.join(); }
    void work(WorkerImpl& w, const Launch& li) {
        uint64_t total = (uint64_t)li.grid.x * li.grid.y * li.grid.z;
        w.rng = config().seed * 0x9E3779B97F4A7C15ull + 88172645463325252ull;
        for (uint64_t b; !failed && (b = next++) < total;) {
            w.run_block(li, {(unsigned)(b % li.grid.x), (unsigned)(b / li.grid.x % li.grid.y), (unsigned)(b / ((uint64_t)li.grid.x * li.grid.y))});
            if (w.failed) failed = true;
        }
    }
    void main_loop(WorkerImpl* w) {
        tls_worker = w; uint64_t seen = 0;
        for (;;) {
            const Launch* li;
            { std::unique_lock l(m); cv.wait(l, [&] { return stop || gen != seen; }); if (stop) return; seen = gen; li = job; }
            work(*w, *li);
            { std::lock_guard g(m); if (--left == 0) done.notify_all(); }
        }
    }
    void run(const Launch& li) {
        int n = std::max(1, config().workers);
        if ((int)th.size() != n) {
            { std::lock_guard g(m); stop = true; } cv.notify_all(); for (auto& t : th) t.t.join(); th.clear(); stop = false; gen = 0;
            for (int i = 0; i < n; ++i) { th.emplace_back(); th.back().w = std::make_unique<WorkerImpl>(); th.back().t = std::thread([this, w = th.back().w.get()] { main_loop(w); }); }
        }
        { std::lock_guard g(m); job = &li; next = 0; failed = false; left = n; ++gen; } cv.notify_all();
        std::unique_lock l(m);
        if (!done.wait_for(l, std::chrono::seconds(g_config.timeout_s), [&] { return left == 0; })) {
            std::fprintf(stderr, "SIMT ERROR: kernel still running after %d s - a spin loop that never yields, or waiting for a block that is not resident?\n", g_config.timeout_s); std::abort();
        }
        auto& c = counters(); ++c.launches;
        for (auto& t : th) { auto& w = *t.w; c.blocks += w.n_blocks; c.threads += w.n_threads; c.switches += w.n_switch; c.barriers += w.n_barrier; c.warp_ops += w.n_warp; w.n_blocks = w.n_threads = w.n_switch = w.n_barrier = w.n_warp = 0; }
    }
};
int run(const Launch& li) {
    static Pool pool;
    tls_symbols();                            // parse the executable once, on the host thread
    uint64_t n = (uint64_t)li.block.x * li.block.y * li.block.z;
    auto bad = [&](cudaError_t e, const std::string& why) { g_report = "SIMT ERROR: launch rejected\n  " + why + "\n"; g_last = e; if (config().abort_on_error) std::fputs(g_report.c_str(), stderr); return (int)e; };
    if (g_last == cudaErrorInvalidValue) { return g_last; }
    if (n == 0 || n > (uint64_t)config().max_threads_per_block || li.block.z > 64) return bad(cudaErrorInvalidConfiguration, "block has " + std::to_string(n) + " threads (limit 1024, z <= 64)");
    if (!li.grid.x || !li.grid.y || !li.grid.z || li.grid.y > 65535 || li.grid.z > 65535 || li.grid.x > 0x7fffffff) return bad(cudaErrorInvalidConfiguration, "grid dimension out of range");
    if (li.smem > dynamic_smem_limit(li.kernel)) return bad(cudaErrorInvalidValue, std::to_string(li.smem) + " bytes of dynamic shared memory; more than 48 KiB needs cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)");
    g_last = cudaSuccess;
    pool.run(li);
    return (int)g_last;
}
}  // namespace emulator

// ================================================================ host API
using namespace emulator;
cudaError_t simt_malloc(void** p, size_t n) {
    if (trace_hooks.alloc) *p = trace_hooks.alloc(n);
    else if (posix_memalign(p, 256, n ? n : 1)) return cudaErrorMemoryAllocation;      // exact size: ASan red zones start right behind
    if (config().poison) std::memset(*p, 0xFF, n);
    std::lock_guard g(g_mu); heap()[(uintptr_t)*p] = n; return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
    if (!p) return cudaSuccess;
    { std::lock_guard g(g_mu); if (!heap().erase((uintptr_t)p)) return cudaErrorInvalidValue; }
    if (!trace_hooks.alloc) std::free(p);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind k) {
    bool dd = is_device_pointer(d), sd = is_device_pointer(s);
    if ((k == cudaMemcpyHostToDevice && (!dd || sd)) || (k == cudaMemcpyDeviceToHost && (dd || !sd)) || (k == cudaMemcpyDeviceToDevice && !(dd && sd))) return g_last = cudaErrorInvalidValue;
    std::memcpy(d, s, n); if (dd && trace_hooks.host_write) trace_hooks.host_write(d, n); return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int v, size_t n) { if (!is_device_pointer(p)) return g_last = cudaErrorInvalidValue; std::memset(p, v, n); if (trace_hooks.host_write) trace_hooks.host_write(p, n); return cudaSuccess; }
cudaError_t cudaGetLastError() { cudaError_t e = g_last; g_last = cudaSuccess; return e; }
const char* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : g_report.empty() ? "error" : g_report.c_str(); }
