#include "lab/decode/stop.hpp"

#include <algorithm>
#include <utility>

#include "lab/core/error.hpp"

namespace lab {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_)
    LAB_CHECK(!s.empty(), "a stop string is empty; give text or leave the option out");
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return "";
  held_ += text;
  std::size_t found = std::string::npos;
  for (const std::string& s : stops_) found = std::min(found, held_.find(s));
  if (found != std::string::npos) {
    stopped_ = true;
    held_.resize(found);
    return std::exchange(held_, "");
  }
  std::size_t keep = 0;  // the longest end of the text that begins a stop string
  for (const std::string& s : stops_)
    for (std::size_t n = std::min(s.size() - 1, held_.size()); n > keep; --n)
      if (held_.ends_with(std::string_view(s).substr(0, n))) keep = n;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return out;
}

std::string StopMatcher::finish() { return std::exchange(held_, ""); }

}  // namespace lab
