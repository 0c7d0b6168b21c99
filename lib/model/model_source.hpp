/// @file
/// Opens a model wherever it lies: a GGUF file, a safetensors file, or a folder of either.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "lab/core/mapped_file.hpp"
#include "lab/model/checkpoint.hpp"
#include "lab/model/config.hpp"
#include "lab/model/gguf.hpp"
#include "lab/model/vocab.hpp"
#include "lab/model/weights.hpp"

namespace lab {

/// A model as it lies in its files. Move-only; weights and tensors point into `files`.
struct ModelSource {
  std::vector<MappedFile> files;
  Checkpoint checkpoint;
  Config config;
  Vocab vocab;
  Weights weights;
  std::optional<GgufFile> gguf;  ///< set for GGUF: the metadata, for `inspect`
};

/// Opens and checks a model. The content decides about the format, not the name.
/// @param path  a .gguf file; a .safetensors file with config.json and tokenizer.json
/// beside
///   it; or a folder that holds either
/// @throws Error that names the file and what is wrong with it
ModelSource open_model(const std::filesystem::path& path);

}  // namespace lab
