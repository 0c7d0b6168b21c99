#include "simt/faults.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>

#include "simt/report.hpp"
#include "simt/worker.hpp"

#if defined(SIMT_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {
namespace {

constexpr std::size_t kStack = 256 * 1024;
#if defined(SIMT_ASAN)
constexpr int kHandled = 1;
#else
constexpr int kHandled = 4;
#endif

/// Two stacks: the signal handler's, and the one on which the thread goes on.
thread_local char* fault_stacks = nullptr;

struct sigaction* previous_actions = nullptr;
const int* handled_signals = nullptr;

[[noreturn]] void continue_after_signal() {
#if defined(SIMT_ASAN)
  __sanitizer_start_switch_fiber(nullptr, fault_stacks + kStack, kStack);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  Worker::current()->after_signal();
}

/// Makes the interrupted thread continue in continue_after_signal().
/// @return the program counter where it was
const void* redirect(ucontext_t& context) {
  const auto top = reinterpret_cast<std::uintptr_t>(fault_stacks) + 2 * kStack;
  const auto entry = reinterpret_cast<std::uintptr_t>(&continue_after_signal);
#if defined(__x86_64__)
  auto* registers = context.uc_mcontext.gregs;
  const auto* pc = reinterpret_cast<const void*>(registers[REG_RIP] + 1);
  registers[REG_RSP] = greg_t(top - 64 - 8);  // aligned as after a call
  registers[REG_RIP] = greg_t(entry);
  return pc;
#elif defined(__aarch64__)
  const auto* pc = reinterpret_cast<const void*>(context.uc_mcontext.pc + 1);
  context.uc_mcontext.sp = top - 64;
  context.uc_mcontext.pc = entry;
  return pc;
#else
  (void)context, (void)top, (void)entry;
  return nullptr;
#endif
}

void handle(int signal, siginfo_t* info, void* context) {
  Worker* worker = Worker::current();
  if (worker && fault_stacks && !worker->in_runtime) {
    worker->in_runtime = true;
    worker->fault_signal = signal;
    worker->fault_address = info->si_addr;
    worker->fault_pc = redirect(*static_cast<ucontext_t*>(context));
    return;
  }
  for (int i = 1; i < kHandled;
       ++i)  // not a kernel's: let it happen again to the previous handler
    if (handled_signals[i] == signal) sigaction(signal, &previous_actions[i], nullptr);
}

}  // namespace

FaultHandlers::FaultHandlers() {
  handled_signals = kSignals;
  previous_actions = previous_;
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < kHandled; ++i) sigaction(kSignals[i], &action, &previous_[i]);
}

FaultHandlers::~FaultHandlers() {
  for (int i = 0; i < kHandled; ++i) sigaction(kSignals[i], &previous_[i], nullptr);
}

void prepare_signal_stack() {
  void* p = mmap(nullptr, 2 * kStack, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return;  // then faults are not caught
  fault_stacks = static_cast<char*>(p);
  stack_t stack{};
  stack.ss_sp = p;
  stack.ss_size = kStack;
  sigaltstack(&stack, nullptr);
}

void interrupt(pthread_t thread) { pthread_kill(thread, SIGURG); }

void Worker::after_signal() {
  report_signal();
  abandon_block();
}

void Worker::report_signal() {
  const std::string who =
      describe(current_lane) + " at " + source_lines({fault_pc}).front();
  if (fault_signal == SIGURG) {
    report(
        "time limit",
        who + " is still running after " + std::to_string(config().timeout_s) +
            " s: an endless loop, or it waits for a thread that cannot run. Waiting must "
            "use atomics or __nanosleep()");
    return;
  }
  if (fault_signal == SIGFPE) {
    report("integer division by zero", who);
    return;
  }
  char address[32];
  std::snprintf(address, sizeof address, "%p", fault_address);
  report("invalid memory access",
         who + " touches address " + address +
             ", where there is no memory: a null or wild pointer, or a stack overflow (a "
             "thread's local arrays may take " +
             std::to_string(config().stack_bytes) + " bytes)");
}

void RuntimeScope::expire() {
  worker_.expired = false;
  worker_.fail("time limit", worker_.describe(worker_.current_lane) +
                                 " is still waiting after " +
                                 std::to_string(config().timeout_s) +
                                 " s for what another thread must do");
}

}  // namespace emulator
