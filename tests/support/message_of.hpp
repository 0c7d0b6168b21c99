/// @file
/// What an error says.
#pragma once

#include <functional>
#include <string>

#include "lab/core/error.hpp"

namespace lab::test {

/// The message of the Error that f throws; empty if it throws none.
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace lab::test
