/// @file
/// JSON from files that may be hostile. Private to lib/model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lab::detail {

/// @param what       names the text in errors
/// @param max_depth  objects and arrays may be nested this deep
/// @return the text's value, which is an object
/// @throws Error if it is not a JSON object, is nested deeper, or has a key twice
nlohmann::json parse_json_object(std::string_view text, const std::string& what,
                                 int max_depth = 64);

/// @throws Error if the file cannot be read or is not a JSON object
nlohmann::json read_json_file(const std::filesystem::path& path);

/// @throws Error if the file cannot be read
std::string read_text_file(const std::filesystem::path& path);

}  // namespace lab::detail
