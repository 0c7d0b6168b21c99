/// @file
/// UTF-8 repair: what every text is passed through before it is tokenized or printed.
#pragma once

#include <string>
#include <string_view>

namespace lab {

/// U+FFFD, which stands for bytes that are no text.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// @return how many of the first bytes of `text` belong together
///
/// One well-formed character, or the longest ill-formed sequence that could have begun one
/// (at least one byte): Unicode 15, section 3.9, "substitution of maximal subparts", which
/// is also what Python's bytes.decode("utf-8", "replace") does.
struct Utf8Unit {
  int length = 0;           ///< bytes; 0 only for an empty text
  bool valid = false;       ///< a well-formed character
  bool incomplete = false;  ///< ill-formed only because the text ends here
};
/// @return the unit that `text` begins with
Utf8Unit next_utf8_unit(std::string_view text);

/// @return `bytes` with each ill-formed sequence replaced by one U+FFFD; always valid UTF-8
std::string sanitize_utf8(std::string_view bytes);

}  // namespace lab
