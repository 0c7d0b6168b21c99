/// @file
/// What kernels.inc needs: included before a target region begins.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "../blocks.hpp"
#include "../pack.hpp"
#include "table.hpp"
#include "target.hpp"
