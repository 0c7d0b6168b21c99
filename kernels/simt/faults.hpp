/// @file
/// Signals as reports: a kernel that touches memory it must not, overflows its stack or
/// never ends fails its launch instead of ending the process.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace emulator {

/// While it exists, faults of kernels are caught; everybody else's go where they went
/// before. With the address sanitizer, which has better reports, only interrupt() is
/// handled.
class FaultHandlers {
 public:
  FaultHandlers();
  ~FaultHandlers();
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;

 private:
  static constexpr int kSignals[] = {SIGURG, SIGSEGV, SIGBUS, SIGFPE};
  struct sigaction previous_[4];
};

/// Gives the calling thread a stack for its signal handlers, whose own may have overflowed.
void prepare_signal_stack();

/// Stops the kernel code that a worker's thread is running; nothing happens if it runs
/// none.
void interrupt(pthread_t thread);

}  // namespace emulator
