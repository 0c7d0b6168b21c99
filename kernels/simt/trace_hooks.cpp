// The callbacks that compilers emit for -fsanitize=thread. Atomic builtins appear in
// kernels only inside the emulator's atomics, which have already been accounted for: they
// are just done.
#include "simt/trace.hpp"

namespace {

void trace(const void* p, std::size_t bytes, bool write, bool is_volatile, const void* pc) {
  using namespace emulator;
  Worker* worker = Worker::current();
  if (!worker || worker->in_runtime.load(std::memory_order_relaxed)) return;
  if (worker->on_fiber_stack(p)) return;
  worker->in_foreign_frame = true;
  RuntimeScope scope(*worker);
  MemoryTracer& t = memory_tracer();
  if (is_volatile) {
    t.volatile_access(*worker, p);
    // Polling must let others run, or it never ends.
    constexpr unsigned kPatience = 256;
    if (++worker->atomics_in_a_row > kPatience) {
      worker->yield();
      worker->in_foreign_frame = true;  // others have run
    }
  }
  t.on_access(*worker, {p, bytes, write, is_volatile, pc, {}});
  worker->in_foreign_frame = false;
}

}  // namespace

#define PC __builtin_return_address(0)
#define ACCESS(NAME, BYTES, WRITE, VOLATILE) \
  extern "C" void __tsan_##NAME(void* p) { trace(p, BYTES, WRITE, VOLATILE, PC); }
#define ACCESSES(BYTES)                                      \
  ACCESS(read##BYTES, BYTES, false, false)                   \
  ACCESS(write##BYTES, BYTES, true, false)                   \
  ACCESS(unaligned_read##BYTES, BYTES, false, false)         \
  ACCESS(unaligned_write##BYTES, BYTES, true, false)         \
  ACCESS(volatile_read##BYTES, BYTES, false, true)           \
  ACCESS(volatile_write##BYTES, BYTES, true, true)           \
  ACCESS(unaligned_volatile_read##BYTES, BYTES, false, true) \
  ACCESS(unaligned_volatile_write##BYTES, BYTES, true, true) \
  extern "C" void __tsan_read_write##BYTES(void* p) {        \
    trace(p, BYTES, false, false, PC);                       \
    trace(p, BYTES, true, false, PC);                        \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" {

void __tsan_read_range(void* p, std::size_t n) { trace(p, n, false, false, PC); }
void __tsan_write_range(void* p, std::size_t n) { trace(p, n, true, false, PC); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

#define ATOMIC(BITS, T)                                                                    \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) {                                 \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                           \
  }                                                                                        \
  void __tsan_atomic##BITS##_store(volatile T* p, T v, int) {                              \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                              \
  }                                                                                        \
  T __tsan_atomic##BITS##_exchange(volatile T* p, T v, int) {                              \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                    \
  }                                                                                        \
  T __tsan_atomic##BITS##_fetch_add(volatile T* p, T v, int) {                             \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                        \
  T __tsan_atomic##BITS##_fetch_sub(volatile T* p, T v, int) {                             \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                        \
  T __tsan_atomic##BITS##_fetch_and(volatile T* p, T v, int) {                             \
    return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                        \
  T __tsan_atomic##BITS##_fetch_or(volatile T* p, T v, int) {                              \
    return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                        \
  T __tsan_atomic##BITS##_fetch_xor(volatile T* p, T v, int) {                             \
    return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                        \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* p, T* c, T v, int, int) {  \
    return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST,                   \
                                       __ATOMIC_SEQ_CST);                                  \
  }                                                                                        \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile T* p, T* c, T v, int, int) {    \
    return __atomic_compare_exchange_n(p, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                        \
  T __tsan_atomic##BITS##_compare_exchange_val(volatile T* p, T c, T v, int, int) {        \
    __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
    return c;                                                                              \
  }
ATOMIC(8, char)
ATOMIC(16, short)
ATOMIC(32, int)
ATOMIC(64, long long)

#ifdef __clang__
// Clang 14 turns the copy of a struct into a call of memcpy; the programs are linked with
// --wrap for these (CMakeLists.txt).
void* __real_memcpy(void* to, const void* from, std::size_t n);
void* __real_memmove(void* to, const void* from, std::size_t n);
void* __real_memset(void* p, int value, std::size_t n);
void* __wrap_memcpy(void* to, const void* from, std::size_t n) {
  trace(from, n, false, false, PC);
  trace(to, n, true, false, PC);
  return __real_memcpy(to, from, n);
}
void* __wrap_memmove(void* to, const void* from, std::size_t n) {
  trace(from, n, false, false, PC);
  trace(to, n, true, false, PC);
  return __real_memmove(to, from, n);
}
void* __wrap_memset(void* p, int value, std::size_t n) {
  trace(p, n, true, false, PC);
  return __real_memset(p, value, n);
}
#endif

}  // extern "C"
