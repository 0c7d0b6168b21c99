// Leaves a process behind, in a session of its own.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline std::vector<int> prefix_sums(std::span<const int> x) {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int second = 0; second < 60; ++second) sleep(1);
    }
    _exit(0);
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
