#include <algorithm>

#include "ladders/rung.hpp"

namespace lab::LAB_GPU {
namespace {

constexpr int kRuns = 15;

/// An event that is destroyed with its owner.
class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double median_seconds(const Rung& rung, const Operands& o, Stream stream) {
  for (int i = 0; i < 3; ++i) rung.run(o, stream);  // warm caches, clocks and code
  const Event start, stop;
  std::vector<float> ms(kRuns);
  for (float& t : ms) {
    check_cuda(cudaEventRecord(start, stream), "an event");
    rung.run(o, stream);
    check_cuda(cudaEventRecord(stop, stream), "an event");
    check_cuda(cudaEventSynchronize(stop), "an event");
    check_cuda(cudaEventElapsedTime(&t, start, stop), "an event");
  }
  std::nth_element(ms.begin(), ms.begin() + kRuns / 2, ms.end());
  return double(ms[kRuns / 2]) * 1e-3;
}

}  // namespace lab::LAB_GPU
