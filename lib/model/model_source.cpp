#include "lab/model/model_source.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/model/gguf_model.hpp"
#include "lab/model/hf_model.hpp"
#include "lab/model/json_file.hpp"
#include "lab/model/parse_support.hpp"
#include "lab/model/safetensors.hpp"

namespace lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

/// Runs `body`, and puts the path before the message of an Error.
template <class Body>
auto naming(const fs::path& path, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw Error(fmt::format("'{}': {}", path.string(), e.what()));
  }
}

/// The embedding may have more rows than the tokenizer has tokens (rows are often padded),
/// but a token without a row could be asked for.
void check_rows(const ModelSource& model) {
  LAB_CHECK(
      static_cast<std::int64_t>(model.vocab.tokens.size()) <= model.config.vocab_size,
      "the tokenizer has {} tokens, but the embedding has only {} rows; tokenizer and "
      "weights do not belong together",
      model.vocab.tokens.size(), model.config.vocab_size);
}

ModelSource open_gguf(MappedFile file) {
  ModelSource model;
  model.gguf = parse_gguf(file.bytes());
  model.files.push_back(std::move(file));
  model.checkpoint = Checkpoint(model.gguf->tensors);
  model.config = config_from_gguf(model.gguf->metadata, model.checkpoint);
  model.vocab = vocab_from_gguf(model.gguf->metadata);
  model.weights = bind_weights(model.checkpoint, model.config, WeightNames::gguf);
  check_rows(model);
  return model;
}

/// What open_gguf does, once the tensors are known, with the JSON files of `folder`.
void open_hf(ModelSource& model, const fs::path& folder) {
  for (const char* name : {"config.json", "tokenizer.json"})
    LAB_CHECK(fs::exists(folder / name),
              "'{}' is missing; safetensors models need it beside "
              "the weights",
              (folder / name).string());
  const fs::path config = folder / "config.json";
  model.config = naming(config, [&] {
    return config_from_hf(detail::read_text_file(config), model.checkpoint);
  });
  model.vocab = naming(folder, [&] { return vocab_from_hf(folder); });
  naming(folder, [&] {
    model.weights = bind_weights(model.checkpoint, model.config, WeightNames::hf);
    check_rows(model);
  });
}

ModelSource open_safetensors(MappedFile file, const fs::path& path) {
  ModelSource model;
  model.checkpoint =
      naming(path, [&] { return Checkpoint(parse_safetensors(file.bytes())); });
  model.files.push_back(std::move(file));
  open_hf(model, path.parent_path().empty() ? fs::path(".") : path.parent_path());
  return model;
}

/// Reads one shard and appends the tensors that the index expects in it.
void add_shard(ModelSource& model, std::vector<TensorInfo>& tensors, const fs::path& path,
               const std::vector<std::string>& expected) {
  LAB_CHECK(fs::exists(path), "'{}' is missing, but the index lists it; fetch all parts",
            path.string());
  const MappedFile& file = model.files.emplace_back(path);
  naming(path, [&] {
    const Checkpoint shard(parse_safetensors(file.bytes()));
    for (const std::string& name : expected) {
      const TensorInfo* tensor = shard.find(name);
      LAB_CHECK(tensor != nullptr,
                "tensor {} is missing, but the index lists it for this file",
                detail::quote(name));
      tensors.push_back(*tensor);
    }
  });
}

ModelSource open_sharded(const fs::path& folder) {
  const fs::path index = folder / kIndexFile;
  const auto map =
      naming(index, [&] { return parse_safetensors_index(detail::read_text_file(index)); });
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, file] : map) shards[file].push_back(tensor);
  ModelSource model;
  std::vector<TensorInfo> tensors;
  for (const auto& [file, names] : shards) add_shard(model, tensors, folder / file, names);
  model.checkpoint = naming(index, [&] { return Checkpoint(std::move(tensors)); });
  open_hf(model, folder);
  return model;
}

ModelSource open_file(const fs::path& path) {
  MappedFile file(path);
  if (is_gguf(file.bytes()))
    return naming(path, [&] { return open_gguf(std::move(file)); });
  LAB_CHECK(
      is_safetensors(file.bytes()),
      "'{}' is neither GGUF nor safetensors: it has {} bytes and does not begin as either "
      "does; give a .gguf or .safetensors file",
      path.string(), file.bytes().size());
  return open_safetensors(std::move(file), path);
}

ModelSource open_folder(const fs::path& folder) {
  std::vector<std::string> gguf;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".gguf")
      gguf.push_back(entry.path().filename().string());
  std::ranges::sort(gguf);
  const bool single = fs::exists(folder / kSingleFile),
             sharded = fs::exists(folder / kIndexFile);
  LAB_CHECK(gguf.size() + (single || sharded) <= 1,
            "'{}' holds several models ({}{}); give the path of one file", folder.string(),
            fmt::join(gguf, ", "), single || sharded ? ", safetensors" : "");
  if (!gguf.empty()) return open_file(folder / gguf.front());
  if (single) return open_file(folder / kSingleFile);
  LAB_CHECK(sharded, "'{}' holds no model: expected a .gguf file, {} or {}",
            folder.string(), kSingleFile, kIndexFile);
  return open_sharded(folder);
}

}  // namespace

ModelSource open_model(const std::filesystem::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  LAB_CHECK(fs::exists(status), "'{}' does not exist; give a model file or folder",
            path.string());
  try {
    return fs::is_directory(status) ? open_folder(path) : open_file(path);
  } catch (const fs::filesystem_error& e) {
    throw Error(fmt::format("cannot read '{}': {}", path.string(), e.code().message()));
  }
}

}  // namespace lab
