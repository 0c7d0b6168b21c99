/// @file
/// Writes safetensors files for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "lab/core/dtype.hpp"

namespace lab::test {

struct StoredTensor {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

/// A file from a header text as it is and data as they are: also for damaged files.
inline std::vector<std::byte> safetensors_raw(std::string_view header,
                                              std::span<const std::byte> data) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> out(sizeof length + header.size() + data.size());
  std::memcpy(out.data(), &length, sizeof length);
  std::memcpy(out.data() + sizeof length, header.data(), header.size());
  if (!data.empty())
    std::memcpy(out.data() + sizeof length + header.size(), data.data(), data.size());
  return out;
}

/// A file with the tensors' data in the given order; the header is padded with spaces to a
/// multiple of 8, so that the data begin aligned.
inline std::vector<std::byte> safetensors_bytes(std::span<const StoredTensor> tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::vector<std::byte> data;
  for (const StoredTensor& t : tensors) {
    const std::size_t begin = data.size();
    data.insert(data.end(), t.data.begin(), t.data.end());
    header[t.name] = {{"dtype", name(t.dtype)},
                      {"shape", t.shape},
                      {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return safetensors_raw(text, data);
}

}  // namespace lab::test
