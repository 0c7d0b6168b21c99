/// @file
/// GPT-2's alphabet: 256 printable characters that stand for the 256 bytes in token texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lab {

/// @return the character (UTF-8) that stands for a byte: itself for 21-7E, A1-AC and AE-FF;
///         U+0100, U+0101, ... in order for the other 68, so a space is U+0120.
const std::string& alphabet_letter(std::uint8_t byte);

/// @return the text that stands for these bytes
std::string to_alphabet(std::string_view bytes);

/// @return the bytes that this text stands for, or nothing if it holds another character
std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace lab
