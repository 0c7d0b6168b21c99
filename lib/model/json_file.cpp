#include "lab/model/json_file.hpp"

#include <set>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/core/mapped_file.hpp"
#include "lab/model/parse_support.hpp"

namespace lab::detail {

nlohmann::json parse_json_object(std::string_view text, const std::string& what,
                                 int max_depth) {
  using json = nlohmann::json;
  // The library takes NUL for the end of the text, and keeps the last of two equal keys.
  const std::size_t nul = text.find('\0');
  LAB_CHECK(nul == text.npos, "{} has a NUL byte at {}, which is not JSON", what, nul);
  std::vector<std::set<std::string>> keys;  // of each open object or array
  const auto check = [&](int, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      LAB_CHECK(keys.size() < std::size_t(max_depth), "{} is nested deeper than {} levels",
                what, max_depth);
      keys.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      keys.pop_back();
    } else if (event == Event::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      LAB_CHECK(keys.back().insert(name).second, "{} has the key {} twice", what,
                quote(name));
    }
    return true;
  };
  json value;
  try {
    value = json::parse(text, check);
  } catch (const json::parse_error& e) {
    throw Error(fmt::format("{} is not valid JSON (at byte {})", what, e.byte));
  } catch (const json::exception&) {  // a number beyond every type
    throw Error(fmt::format("{} is not valid JSON (a number is out of range)", what));
  }
  LAB_CHECK(value.is_object(), "{} is JSON but not an object", what);
  return value;
}

std::string read_text_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

nlohmann::json read_json_file(const std::filesystem::path& path) {
  return parse_json_object(read_text_file(path), "'" + path.string() + "'");
}

}  // namespace lab::detail
