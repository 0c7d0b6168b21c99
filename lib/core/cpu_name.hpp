/// @file
/// What measurements were taken on.
#pragma once

#include <string>

namespace lab {

/// @return the CPU's model as the system names it
std::string cpu_name();

}  // namespace lab
