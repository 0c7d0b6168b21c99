#include "lab/model/gguf_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <type_traits>

#include "lab/core/error.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

constexpr std::uint32_t kVersion = 3;

/// Appends numbers and strings to a growing file.
struct Output {
  std::vector<std::byte> bytes;

  void raw(const void* data, std::size_t n) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + n);
  }
  template <class T>
  void number(T v) {
    raw(&v, sizeof v);
  }
  void string(const std::string& text) {
    number<std::uint64_t>(text.size());
    raw(text.data(), text.size());
  }
  void pad(std::size_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  }
};

template <class T>
void put_scalar(Output& out, const T& v) {
  if constexpr (std::is_same_v<T, bool>)
    out.number<std::uint8_t>(v ? 1 : 0);
  else if constexpr (std::is_same_v<T, std::string>)
    out.string(v);
  else
    out.number(v);
}

void put_array(Output& out, const GgufArray& array) {
  out.number(static_cast<std::uint32_t>(array.index()));
  std::visit(
      [&]<class T>(const T& elements) {
        if constexpr (!std::is_same_v<T, std::monostate>) {
          out.number<std::uint64_t>(elements.size());
          for (const typename T::value_type& v : elements) put_scalar(out, v);
        }
      },
      array);
}

void put_entry(Output& out, const std::string& key, const GgufValue& value) {
  out.string(key);
  out.number(static_cast<std::uint32_t>(value.index()));
  std::visit(
      [&]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, GgufArray>)
          put_array(out, v);
        else
          put_scalar(out, v);
      },
      value);
}

}  // namespace

GgufWriter::GgufWriter(std::uint32_t alignment) : alignment_(alignment) {
  LAB_CHECK(alignment >= 8 && (alignment & (alignment - 1)) == 0 &&
                alignment <= kGgufMaxAlignment,
            "GGUF writer: alignment {} is not a power of two from 8 to {}", alignment,
            kGgufMaxAlignment);
  if (alignment != kGgufDefaultAlignment) add("general.alignment", alignment);
}

void GgufWriter::add(std::string key, GgufValue value) {
  const auto* array = std::get_if<GgufArray>(&value);
  LAB_CHECK(array == nullptr || array->index() != kGgufArrayType,
            "GGUF writer: metadata key '{}' has an array without a type", key);
  metadata_.add(std::move(key), std::move(value));
}

void GgufWriter::add_tensor(std::string name, DType dtype, std::vector<std::int64_t> shape,
                            std::span<const std::byte> data) {
  LAB_CHECK(!name.empty() && name.size() <= kGgufMaxTensorName,
            "GGUF writer: tensor name '{}' has {} bytes, expected 1 to {}", name,
            name.size(), kGgufMaxTensorName);
  LAB_CHECK(std::ranges::none_of(tensors_, [&](const Entry& e) { return e.name == name; }),
            "GGUF writer: tensor '{}' is added twice", name);
  LAB_CHECK(shape.size() <= kGgufMaxDims,
            "GGUF writer: tensor '{}' has {} dimensions, at most {} can be stored", name,
            shape.size(), kGgufMaxDims);
  const auto size =
      detail::checked_size(std::vector<std::uint64_t>(shape.begin(), shape.end()));
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  LAB_CHECK(size.has_value() && row % dtype_info(dtype).block_size == 0,
            "GGUF writer: tensor '{}' of shape {} cannot be stored as {}", name,
            shape_text(shape), lab::name(dtype));
  const auto expected = static_cast<std::size_t>(row_bytes(dtype, *size));
  LAB_CHECK(data.size() == expected,
            "GGUF writer: tensor '{}' of shape {} and type {} needs {} bytes, got {}", name,
            shape_text(shape), lab::name(dtype), expected, data.size());
  tensors_.push_back(
      {std::move(name), dtype, std::move(shape), {data.begin(), data.end()}});
}

std::vector<std::byte> GgufWriter::bytes() const {
  Output out;
  out.raw("GGUF", 4);
  out.number(kVersion);
  out.number<std::uint64_t>(tensors_.size());
  out.number<std::uint64_t>(metadata_.entries().size());
  for (const auto& [key, value] : metadata_.entries()) put_entry(out, key, value);
  std::uint64_t offset = 0;
  for (const Entry& t : tensors_) {
    out.string(t.name);
    out.number(static_cast<std::uint32_t>(t.shape.size()));
    for (auto it = t.shape.rbegin(); it != t.shape.rend(); ++it)
      out.number(static_cast<std::uint64_t>(*it));
    out.number(ggml_type_id(t.dtype));
    out.number(offset);
    offset += (t.data.size() + alignment_ - 1) / alignment_ * alignment_;
  }
  for (const Entry& t : tensors_) {
    out.pad(alignment_);
    out.raw(t.data.data(), t.data.size());
  }
  out.pad(alignment_);
  return std::move(out.bytes);
}

void GgufWriter::write(const std::filesystem::path& path) const {
  const std::vector<std::byte> all = bytes();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(all.data()),
             static_cast<std::streamsize>(all.size()));
  file.close();
  LAB_CHECK(file.good(), "cannot write '{}': {}; check the folder and the space left",
            path.string(), std::strerror(errno));
}

}  // namespace lab
