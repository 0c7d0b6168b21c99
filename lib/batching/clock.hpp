/// @file
/// The engine's time, real or imagined.
#pragma once

#include <chrono>
#include <thread>

namespace lab {

/// Seconds since some moment, never going back.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual double now_s() const = 0;
  /// Returns at `t_s`, or at once if that is past.
  virtual void wait_until(double t_s) = 0;
};

/// Real time, from 0 when it is made.
class SteadyClock final : public Clock {
 public:
  double now_s() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void wait_until(double t_s) override {
    std::this_thread::sleep_until(
        start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                     std::chrono::duration<double>(t_s)));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Time that passes only when told to: an hour of load takes as long as its arithmetic.
class VirtualClock final : public Clock {
 public:
  double now_s() const override { return now_s_; }
  void wait_until(double t_s) override {
    if (t_s > now_s_) now_s_ = t_s;
  }
  void advance(double seconds) { now_s_ += seconds; }

 private:
  double now_s_ = 0;
};

}  // namespace lab
