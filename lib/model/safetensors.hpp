/// @file
/// safetensors: the model file format of Hugging Face.
///
///  1. u64 N, little-endian: the header's length in bytes
///  2. N bytes of JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
///  24]}};
///     the optional key "__metadata__" maps strings to strings; spaces may follow
///  3. data: offsets are relative to its start; together they cover it exactly once
///
/// Source: github.com/huggingface/safetensors, README and safetensors/src/tensor.rs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/model/checkpoint.hpp"

namespace lab {

inline constexpr std::size_t kSafetensorsMaxHeader = 100'000'000;

/// @return whether the bytes look like safetensors: a header length that is followed by '{'
bool is_safetensors(std::span<const std::byte> bytes);

/// Reads a whole file. Pure: never touches tensor data.
/// @return the tensors in the order of their data, which they point to
/// @throws Error if the bytes are not a valid safetensors file
std::vector<TensorInfo> parse_safetensors(std::span<const std::byte> bytes);

/// Reads the index of a model whose tensors lie in several files.
/// @param json  the text of model.safetensors.index.json
/// @return tensor name -> file name; the names have no folders in them
/// @throws Error if it is not valid JSON or has no valid "weight_map"
std::map<std::string, std::string> parse_safetensors_index(std::string_view json);

}  // namespace lab
