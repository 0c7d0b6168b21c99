#include <fmt/format.h>

#include <array>
#include <limits>
#include <type_traits>

#include "lab/core/error.hpp"
#include "lab/model/gguf.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

constexpr std::array<std::string_view, kGgufTypeCount> kTypeNames = {
    "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
    "bool", "string", "array", "u64", "i64", "f64"};

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T>
bool fits_int64(T value) {
  if constexpr (std::is_same_v<T, std::uint64_t>)
    return value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return true;
}

[[noreturn]] void throw_type(std::string_view key, std::string_view expected,
                             const GgufValue& found) {
  throw Error(
      fmt::format("metadata key {}: expected {}, found {}; the file was not written "
                  "as GGUF's documentation says",
                  detail::quote(key), expected, gguf_type_text(found)));
}

std::int64_t to_integer(std::string_view key, const GgufValue& value) {
  return std::visit(
      [&]<class T>(const T& v) -> std::int64_t {
        if constexpr (kIsInteger<T>) {
          LAB_CHECK(fits_int64(v), "metadata key {}: {} is too large", detail::quote(key),
                    v);
          return static_cast<std::int64_t>(v);
        } else {
          throw_type(key, "an integer", value);
        }
      },
      value);
}

float to_f32(std::string_view key, const GgufValue& value) {
  if (const auto* v = std::get_if<float>(&value)) return *v;
  if (const auto* v = std::get_if<double>(&value)) return static_cast<float>(*v);
  throw_type(key, "f32", value);
}

template <class T>
const T& get(std::string_view key, std::string_view expected, const GgufValue& value) {
  const T* v = std::get_if<T>(&value);
  if (v == nullptr) throw_type(key, expected, value);
  return *v;
}

}  // namespace

std::string gguf_type_text(const GgufValue& value) {
  const auto* array = std::get_if<GgufArray>(&value);
  if (array == nullptr) return std::string(kTypeNames[value.index()]);
  const std::size_t count = std::visit(
      []<class T>(const T& v) -> std::size_t {
        if constexpr (std::is_same_v<T, std::monostate>)
          return 0;
        else
          return v.size();
      },
      *array);
  return fmt::format("{}[{}]", kTypeNames[array->index()], count);
}

void GgufMetadata::add(std::string key, GgufValue value) {
  const bool is_new = by_key_.emplace(key, entries_.size()).second;
  LAB_CHECK(is_new, "metadata key {} occurs twice", detail::quote(key));
  entries_.emplace_back(std::move(key), std::move(value));
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto it = by_key_.find(std::string(key));
  return it == by_key_.end() ? nullptr : &entries_[it->second].second;
}

const GgufValue& GgufMetadata::required(std::string_view key) const {
  const GgufValue* value = find(key);
  LAB_CHECK(
      value != nullptr,
      "metadata key '{}' is missing; convert the model again with a current converter",
      key);
  return *value;
}

std::int64_t GgufMetadata::integer(std::string_view key) const {
  return to_integer(key, required(key));
}

std::int64_t GgufMetadata::integer(std::string_view key, std::int64_t absent) const {
  return has(key) ? integer(key) : absent;
}

float GgufMetadata::f32(std::string_view key) const { return to_f32(key, required(key)); }

float GgufMetadata::f32(std::string_view key, float absent) const {
  return has(key) ? f32(key) : absent;
}

bool GgufMetadata::boolean(std::string_view key, bool absent) const {
  return has(key) ? get<bool>(key, "bool", required(key)) : absent;
}

const std::string& GgufMetadata::string(std::string_view key) const {
  return get<std::string>(key, "string", required(key));
}

std::string GgufMetadata::string(std::string_view key, std::string_view absent) const {
  return has(key) ? string(key) : std::string(absent);
}

const std::vector<std::string>& GgufMetadata::strings(std::string_view key) const {
  const GgufValue& value = required(key);
  const auto& array = get<GgufArray>(key, "string[]", value);
  const auto* strings = std::get_if<std::vector<std::string>>(&array);
  if (strings == nullptr) throw_type(key, "string[]", value);
  return *strings;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  const GgufValue& value = required(key);
  return std::visit(
      [&]<class T>(const T& array) -> std::vector<std::int64_t> {
        if constexpr (!std::is_same_v<T, std::monostate>) {
          if constexpr (kIsInteger<typename T::value_type>) {
            std::vector<std::int64_t> out;
            out.reserve(array.size());
            for (const auto v : array) {
              LAB_CHECK(fits_int64(v), "metadata key {}: {} is too large",
                        detail::quote(key), v);
              out.push_back(static_cast<std::int64_t>(v));
            }
            return out;
          }
        }
        throw_type(key, "an array of integers", value);
      },
      get<GgufArray>(key, "an array of integers", value));
}

}  // namespace lab
