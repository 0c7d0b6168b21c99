/// @file
/// Random numbers that are the same on every platform (std::*_distribution are not).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace lab {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// Uniform in [low, high).
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(uniform());
  }
  /// Uniform in [0, n); n >= 1.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
  }
  /// Normal with mean 0 and standard deviation 1 (Box and Muller, 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace lab
