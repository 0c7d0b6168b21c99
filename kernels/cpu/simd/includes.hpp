/// @file
/// What kernels.inc needs: included before a target region begins.
#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "../blocks.hpp"
#include "../pack.hpp"
#include "table.hpp"
#include "target.hpp"

namespace lab::cpu {
/// Of 2^23 and above, floats are whole numbers, and their bits count up with them.
inline constexpr float kMagic = 0x1.8p23f;
}  // namespace lab::cpu
