#include "lab/model/utf8.hpp"

#include <cstdint>

namespace lab {
namespace {

// What may follow a lead byte (Unicode 15, table 3-7). The first trail byte's range is
// narrower for the leads E0, F0 (overlong forms), ED (surrogates) and F4 (above U+10FFFF).
struct Lead {
  int length = 0;  // of the whole character; 0 if no character begins with this byte
  std::uint8_t first_low = 0x80, first_high = 0xBF;
};

Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2 || byte > 0xF4) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {4};
}

}  // namespace

Utf8Unit next_utf8_unit(std::string_view text) {
  if (text.empty()) return {};
  const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
  if (lead.length == 0) return {.length = 1};
  for (int i = 1; i < lead.length; ++i) {
    if (i == static_cast<int>(text.size())) return {.length = i, .incomplete = true};
    const auto trail = static_cast<std::uint8_t>(text[i]);
    const std::uint8_t low = i == 1 ? lead.first_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.first_high : 0xBF;
    if (trail < low || trail > high) return {.length = i};
  }
  return {.length = lead.length, .valid = true};
}

std::string sanitize_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Unit unit = next_utf8_unit(bytes);
    text += unit.valid ? bytes.substr(0, unit.length) : kReplacement;
    bytes.remove_prefix(unit.length);
  }
  return text;
}

}  // namespace lab
