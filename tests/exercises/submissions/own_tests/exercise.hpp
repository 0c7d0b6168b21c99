// Brings tests of its own, which do not count.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

namespace exercise {

inline std::vector<int> prefix_sums(std::span<const int> x) { return {x.begin(), x.end()}; }

inline int largest(std::span<const int> x) { return static_cast<int>(x.size()); }

}  // namespace exercise
