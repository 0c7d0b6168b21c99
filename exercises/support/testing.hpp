/// @file
/// What the tests of an exercise include: Catch2 (2.13 or 3) and comparisons that say where
/// two arrays differ. It is compiled once, ahead of the tests, so that they build in a
/// moment.
#ifndef LAB_EXERCISES_TESTING_HPP
#define LAB_EXERCISES_TESTING_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace testing {

/// The seed of this run: always the same for a student, drawn anew for each grading.
inline std::uint32_t seed() {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::getSeed();
#else
  return Catch::rngSeed();
#endif
}

/// Floats between -1 and 1, the same on every system for the same seed and `salt`.
inline std::vector<float> random_floats(std::size_t n, std::uint32_t salt) {
  std::mt19937 bits(seed() * 1000003u + salt);
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(bits() >> 8) * 0x1p-23f - 1;
  return values;
}

/// The result of a comparison: true, or a sentence that Catch2 prints.
struct Comparison {
  std::string difference;
  explicit operator bool() const { return difference.empty(); }
  bool operator!() const { return !difference.empty(); }
};

inline std::ostream& operator<<(std::ostream& out, const Comparison& c) {
  return out << (c.difference.empty() ? "the same" : c.difference);
}

/// Whether all elements agree to within `tolerance`; a NaN agrees with nothing.
template <class A, class B>
Comparison same(const A& actual, const B& expected, double tolerance = 0) {
  std::ostringstream text;
  if (std::size(actual) != std::size(expected)) {
    text << "it has " << std::size(actual) << " elements; expected " << std::size(expected);
    return {text.str()};
  }
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    if (std::abs(a - e) <= tolerance) continue;
    text << "element " << i << " is " << a << "; expected " << e;
    return {text.str()};
  }
  return {};
}

}  // namespace testing

#endif
