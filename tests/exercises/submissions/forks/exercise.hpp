// Starts many processes that sleep; no more than 200, should nothing stop it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline std::vector<int> prefix_sums(std::span<const int> x) {
  for (int i = 0; i < 200; ++i) {
    if (fork() == 0) {
      for (int second = 0; second < 60; ++second) sleep(1);
      _exit(0);
    }
  }
  std::vector<int> sums;
  int sum = 0;
  for (const int element : x) sums.push_back(sum += element);
  return sums;
}

inline int largest(std::span<const int> x) {
  if (x.empty()) throw std::invalid_argument("empty");
  int best = x[0];
  for (const int element : x) best = std::max(best, element);
  return best;
}

}  // namespace exercise
