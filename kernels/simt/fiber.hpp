/// @file
/// Fibers: stacks between which one OS thread switches by itself.
#pragma once

#include <cstddef>

#if !defined(SIMT_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define SIMT_UCONTEXT 1
#endif
#if defined(SIMT_UCONTEXT)
#include <ucontext.h>
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#endif
#if defined(SIMT_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {

#if !defined(SIMT_UCONTEXT)
/// Saves the calling fiber's registers on its stack, and continues the other.
extern "C" void simt_swap(void** save_stack_pointer, void* stack_pointer);
#endif

/// What a suspended fiber continues with. Only the registers that a call preserves and the
/// stack pointer are kept: 10 ns, where swapcontext() takes 220 for a system call.
struct Context {
#if defined(SIMT_UCONTEXT)
  ucontext_t ucontext;
#else
  void* stack_pointer = nullptr;
#endif
};

/// A stack and where to continue on it. An OS thread's own stack is a Fiber too.
struct Fiber {
  Context context{};
  char* stack = nullptr;  ///< lowest address
  std::size_t size = 0;
  void* fake_stack = nullptr;  ///< the address sanitizer's

  /// Makes the fiber start at the beginning of `entry`, which must not return.
  void reset(void (*entry)());
  /// To be called first by `entry`. @param launcher  the fiber that has started this one
  static void entered(Fiber& launcher);
};

/// Suspends `from`, which is running, and continues `to`.
/// @param last  whether `from` will not be continued
inline void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool last = false) {
#if defined(SIMT_ASAN)
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack, to.stack, to.size);
#endif
#if defined(SIMT_UCONTEXT)
  swapcontext(&from.context.ucontext, &to.context.ucontext);
#else
  simt_swap(&from.context.stack_pointer, to.context.stack_pointer);
#endif
#if defined(SIMT_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

/// The stacks of one worker: `count` fibers in one mapping, each with a guard page below
/// it.
class FiberStacks {
 public:
  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;
  /// @throws std::bad_alloc
  void allocate(std::size_t stack_bytes, int count);
  /// Gives fiber `index` its stack.
  void assign(Fiber& fiber, int index);
  bool contains(const void* p) const { return p >= base_ && p < base_ + bytes_; }
  std::size_t stack_bytes() const { return stack_bytes_; }

 private:
  char* base_ = nullptr;
  std::size_t bytes_ = 0, stack_bytes_ = 0;
};

}  // namespace emulator
