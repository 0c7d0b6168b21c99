#include "device.hpp"

#include "cuda/compat.hpp"

namespace lab {

void throw_error(const std::string& message) { throw std::runtime_error(message); }

}  // namespace lab

namespace testing {

namespace gpu = lab::LAB_GPU;

void* allocate_device(std::size_t bytes) {
#ifndef __CUDACC__
  // A test has many launches and little time: after one that did not end, no more.
  if (::emulator::last_report().find("time limit") != std::string::npos)
    throw std::runtime_error("an earlier launch of this test was stopped");
#endif
  std::byte* p = gpu::allocate(bytes, nullptr);
#ifdef __CUDACC__
  gpu::check_cuda(cudaMemset(p, 0xFF, bytes), "memset");
#endif
  return p;
}
void free_device(void* p) { gpu::release(static_cast<std::byte*>(p), nullptr); }

void copy_to_device(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  gpu::copy_to_device(device, host, bytes, nullptr);
  gpu::synchronize(nullptr);
}
void copy_to_host(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  gpu::copy_to_host(host, device, bytes, nullptr);
  gpu::synchronize(nullptr);
}

#ifdef __CUDACC__

bool traced() { return false; }

void in_every_order(const std::function<void()>& work) {
  work();
  gpu::synchronize(nullptr);
}

Cost cost_of(const std::function<void()>&) {
  throw std::runtime_error("a GPU does not count what this test asks for");
}

#else

namespace {

// Long for a correct kernel on a busy machine, and well below a test's own limit, so that
// the emulator is the one that says what happened.
[[maybe_unused]] const bool configured = [] {
  ::emulator::config().timeout_s = 6;
  ::emulator::config().trace_bytes = 32 << 20;  // within the memory that a test may have
  return true;
}();

/// The source line that wastes most, in words.
std::string worst_line() {
  const ::emulator::LineTraffic* worst = nullptr;
  const auto lines = ::emulator::line_traffic();
  const auto wasted = [](const ::emulator::LineTraffic& l) {
    return l.traffic.units - l.traffic.ideal_units;
  };
  for (const auto& l : lines)
    if (wasted(l) > (worst ? wasted(*worst) : 0)) worst = &l;
  if (!worst) return "";
  const auto per_request = [&](std::uint64_t units) {
    return static_cast<double>(units) / static_cast<double>(worst->traffic.requests);
  };
  std::ostringstream text;
  text.precision(3);
  text << worst->line << (worst->store ? " stores " : " loads ")
       << per_request(worst->traffic.units) << (worst->shared ? " wavefronts" : " sectors")
       << " for each warp; " << per_request(worst->traffic.ideal_units) << " would do";
  return text.str();
}

}  // namespace

bool traced() { return ::emulator::traces_memory(); }

void in_every_order(const std::function<void()>& work) {
  using ::emulator::Order;
  for (const Order order : {Order::forward, Order::reverse, Order::random, Order::greedy}) {
    ::emulator::config().order = order;
    work();
  }
  ::emulator::config().order = Order::forward;
}

Cost cost_of(const std::function<void()>& work) {
  ::emulator::reset_counters();
  work();
  const ::emulator::Counters& c = ::emulator::counters();
  return {c.launches,
          c.blocks,
          c.threads,
          c.global_load.requests,
          c.global_load.units,
          c.global_store.units,
          c.shared_load.units + c.shared_store.units,
          c.shared_load.ideal_units + c.shared_store.ideal_units,
          worst_line()};
}

#endif

}  // namespace testing
