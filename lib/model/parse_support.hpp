/// @file
/// What both file formats' parsers need. Private to lib/model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lab::detail {

/// Text from a file, quoted for an error message: control characters and bytes above 0x7e
/// are escaped, so that a hostile file cannot steer a terminal, and long text is shortened.
std::string quote(std::string_view text);

/// @return a * b, or nothing if it does not fit
std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b);

/// @return the product of the extents (1 if there are none), or nothing if it, or an
/// extent,
///   does not fit in an int64
std::optional<std::int64_t> checked_size(std::span<const std::uint64_t> extents);

}  // namespace lab::detail
