/// @file
/// Errors a user can cause, the check that raises them, and the exit codes they end with.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace lab {

/// Something the user gave cannot be used: a file, a shape, a prompt. Exit code 1.
/// The text is one sentence: what was found, what was expected, what to do next.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line is wrong. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Hardware that is not here is needed. Exit code 77, which ctest reports as "skipped".
class UnavailableError : public Error {
 public:
  using Error::Error;
};

inline constexpr int kExitFailure = 1, kExitUsage = 2, kExitUnavailable = 77;

/// Throws lab::Error with a formatted message unless `condition` holds. Always on: this is
/// input validation, and `assert` is not.
#define LAB_CHECK(condition, ...)                     \
  do {                                                \
    if (!(condition)) [[unlikely]]                    \
      throw ::lab::Error(::fmt::format(__VA_ARGS__)); \
  } while (false)

/// Runs a program's body and turns what it throws into one line on stderr and an exit code.
/// @param program  name printed before the message
/// @param body     returns the exit code of a run that did not throw
int guarded_main(const std::string& program, const std::function<int()>& body) noexcept;

}  // namespace lab
