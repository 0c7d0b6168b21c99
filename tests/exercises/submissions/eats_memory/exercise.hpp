// Takes memory without end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline std::vector<int> prefix_sums(std::span<const int> x) {
  std::vector<std::vector<char>> all;
  while (!x.empty()) all.emplace_back().reserve(std::size_t{1} << 28);
  return {};
}

inline int largest(std::span<const int> x) {
  if (x.empty()) throw std::invalid_argument("empty");
  int best = x[0];
  for (const int element : x) best = std::max(best, element);
  return best;
}

}  // namespace exercise
