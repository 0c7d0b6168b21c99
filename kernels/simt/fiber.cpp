#include "simt/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#if defined(SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace emulator {
namespace {

constexpr std::size_t kPage = 4096;

#if defined(SIMT_UCONTEXT)

void make_context(Context& c, char* stack, std::size_t size, void (*entry)()) {
  getcontext(&c.ucontext);
  c.ucontext.uc_stack.ss_sp = stack;
  c.ucontext.uc_stack.ss_size = size;
  c.ucontext.uc_link = nullptr;
  makecontext(&c.ucontext, entry, 0);
}

#elif defined(__x86_64__)

// simt_swap ends in ret, which the return-stack predictor expects: a jump costs 20 ns more.
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

void make_context(Context& c, char* stack, std::size_t size, void (*entry)()) {
  const std::uintptr_t top = (reinterpret_cast<std::uintptr_t>(stack) + size) & ~15ull;
  auto** p = reinterpret_cast<void**>(top);
  *--p = nullptr;  // the entry finds the stack as after a call
  *--p = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--p = nullptr;
  c.stack_pointer = p;
}

#else  // aarch64

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

void make_context(Context& c, char* stack, std::size_t size, void (*entry)()) {
  constexpr std::size_t kSaved = 160, kReturnAddress = 11;  // x30
  const std::uintptr_t top = (reinterpret_cast<std::uintptr_t>(stack) + size) & ~15ull;
  auto** p = reinterpret_cast<void**>(top - kSaved);
  std::memset(p, 0, kSaved);
  p[kReturnAddress] = reinterpret_cast<void*>(entry);
  c.stack_pointer = p;
}

#endif

}  // namespace

void Fiber::reset(void (*entry)()) {
#if defined(SIMT_ASAN)
  __asan_unpoison_memory_region(stack, size);
#endif
  fake_stack = nullptr;
  make_context(context, stack, size, entry);
}

void Fiber::entered([[maybe_unused]] Fiber& launcher) {
#if defined(SIMT_ASAN)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (launcher.size == 0) {
    launcher.stack = static_cast<char*>(const_cast<void*>(bottom));
    launcher.size = bytes;
  }
#endif
}

FiberStacks::~FiberStacks() {
  if (base_) munmap(base_, bytes_);
}

void FiberStacks::allocate(std::size_t stack_bytes, int count) {
  if (base_) munmap(base_, bytes_);
  base_ = nullptr;
  stack_bytes_ = (stack_bytes + kPage - 1) / kPage * kPage;
  bytes_ = std::size_t(count) * (stack_bytes_ + kPage);
  void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<char*>(p);
}

void FiberStacks::assign(Fiber& fiber, int index) {
  char* guard = base_ + std::size_t(index) * (stack_bytes_ + kPage);
  mprotect(guard, kPage, PROT_NONE);
  fiber.stack = guard + kPage;
  // Stacks at a power-of-two distance would keep their hot frames in the same cache sets.
  fiber.size = stack_bytes_ - std::size_t(index % 61) * 192;
}

}  // namespace emulator
