// shared between simt.cpp and simt_trace.cpp
#pragma once
#include "simt.hpp"
#include <vector>
namespace emulator {
struct Async { void* d; const void* s; size_t n, sn; unsigned group; uint64_t pc; };
struct Lane {
    enum State : unsigned char { idle, ready, running, at_block, at_warp, done };
    uint3 tid{}; bool same_site = true;                       // (hot per-lane state lives in Worker::state / fiber)
    uint32_t mask = 0; Resolver resolver = nullptr; WarpCall* call = nullptr; const char* what = ""; Loc loc;
    unsigned groups = 0; std::vector<Async> pending_async;
};
struct Warp { uint32_t waiting = 0, exited = 0; };
struct Worker {
    std::vector<Lane> lanes; std::vector<Warp> warps;
    std::vector<unsigned char> state; std::vector<short> fiber;   // compact: touched on every switch
    int cur = 0, live = 0; bool failed = false; const Launch* job = nullptr;
    uint64_t epoch = 0;                       // grows at every block start and every block barrier
    unsigned char* dyn_base = nullptr; size_t dyn_size = 0; char *stack_lo = nullptr, *stack_hi = nullptr;
    uint64_t n_blocks = 0, n_threads = 0, n_switch = 0, n_barrier = 0, n_warp = 0;
    void* trace = nullptr; bool resolving = false;
    static Worker* current();
    virtual ~Worker() = default;
    virtual void boot() = 0;
    virtual int barrier(BlockOp, int, Loc) = 0;
    virtual void collective(uint32_t, const char*, Resolver, WarpCall&, Loc, bool) = 0;
    virtual void wait() = 0;
    virtual void yield_lane() = 0;
    [[noreturn]] virtual void bail() = 0;
    virtual std::string describe(int) const = 0;
    virtual void report(const char*, const std::string&) = 0;
};
extern thread_local Worker* tls_worker;
struct TraceHooks {                           // installed by simt_trace.cpp
    void (*block_begin)(Worker&) = nullptr; void (*block_end)(Worker&) = nullptr; void (*barrier)(Worker&) = nullptr;
    void (*warp)(Worker&, int warp, uint32_t mask) = nullptr;
    void (*host_write)(void*, size_t) = nullptr; void (*async)(void*, size_t, bool write, uint64_t pc) = nullptr; void (*async_issue)(void*, size_t, uint64_t pc) = nullptr; void* (*alloc)(size_t) = nullptr;
};
extern TraceHooks trace_hooks;
std::pair<unsigned char*, size_t> dynamic_smem();
std::vector<std::pair<void*, size_t>> static_shared();   // this thread's static __shared__ arrays (simt_elf.cpp)
}
