// Does not compile.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline std::vector<int> prefix_sums(std::span<const int> x) {
  std::vector<int> sums;
  int sum = 0;
  for (const int element : x) sums.push_back(sum += element;
  return sums;
}

inline int largest(std::span<const int> x) {
  if (x.empty()) throw std::invalid_argument("empty");
  int best = x[0];
  for (const int element : x) best = std::max(best, element);
  return best;
}

}  // namespace exercise
