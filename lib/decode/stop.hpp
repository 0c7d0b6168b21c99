/// @file
/// Stop strings in a stream of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lab {

/// Passes text on until a stop string appears in it. Holds back the end of the text while
/// it could still be the beginning of a stop string, so that no part of one is ever shown.
class StopMatcher {
 public:
  /// @throws Error if a string is empty
  explicit StopMatcher(std::vector<std::string> stops);

  /// @return what may be shown of the text so far and has not been returned yet
  std::string push(std::string_view text);
  /// @return the held back rest, when no more text comes
  std::string finish();
  /// A stop string has appeared; nothing after its beginning is ever returned.
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace lab
