#include "lab/model/parse_support.hpp"

#include <fmt/format.h>

#include <limits>

namespace lab::detail {

std::string quote(std::string_view text) {
  constexpr std::size_t kMaxShown = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > kMaxShown) out += "...";
  return out + "'";
}

std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  if (a != 0 && b > std::numeric_limits<std::uint64_t>::max() / a) return std::nullopt;
  return a * b;
}

std::optional<std::int64_t> checked_size(std::span<const std::uint64_t> extents) {
  constexpr auto kMax =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t n = 1;
  for (const std::uint64_t extent : extents) {
    const auto product = checked_multiply(n, extent);
    if (extent > kMax || !product || *product >= kMax) return std::nullopt;
    n = *product;
  }
  return static_cast<std::int64_t>(n);
}

}  // namespace lab::detail
