// Writes a file without end.
#pragma once

#include <algorithm>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline std::vector<int> prefix_sums(std::span<const int> x) {
  std::FILE* file = std::fopen("large", "w");
  while (!x.empty()) std::fputs("more and more and more of it all the time\n", file);
  std::fclose(file);
  return {};
}

inline int largest(std::span<const int> x) {
  if (x.empty()) throw std::invalid_argument("empty");
  int best = x[0];
  for (const int element : x) best = std::max(best, element);
  return best;
}

}  // namespace exercise
