// Sums the elements before each one, and takes the smallest.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline std::vector<int> prefix_sums(std::span<const int> x) {
  std::vector<int> sums;
  int sum = 1;
  for (const int element : x) {
    sums.push_back(sum);
    sum += element;
  }
  sums.push_back(sum);
  return sums;
}

inline int largest(std::span<const int> x) {
  return x.empty() ? 0 : *std::min_element(x.begin(), x.end());
}

}  // namespace exercise
