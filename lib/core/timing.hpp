/// @file
/// What a chapter needs to time something.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "lab/core/error.hpp"

namespace lab {

/// How long `f` takes, in real time.
inline double milliseconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::milli>(end - start).count();
}

/// The value in the middle, the upper one of two: a noisy machine moves it less than the
/// mean.
/// @throws Error if there is none
inline double median(std::vector<double> values) {
  LAB_CHECK(!values.empty(), "median: there are no values; measure something first");
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace lab
