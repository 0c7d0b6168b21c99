#include "lab/model/find_model.hpp"

#include <cstdlib>

#include "lab/core/error.hpp"

namespace lab {
namespace {

std::filesystem::path environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

}  // namespace

std::filesystem::path builtin_models_dir() {
  const auto given = environment("LAB_MODELS_DIR");
  return given.empty() ? std::filesystem::path(LAB_SOURCE_MODELS_DIR) : given;
}

std::filesystem::path downloaded_models_dir() {
  auto cache = environment("XDG_CACHE_HOME");
  if (cache.empty()) cache = environment("HOME") / ".cache";
  return cache / "decodelab" / "models";
}

std::filesystem::path find_model(const std::string& model) {
  if (model == "target" || model == "draft") {
    const auto path = builtin_models_dir() / (model + ".gguf");
    LAB_CHECK(
        std::filesystem::exists(path),
        "the built-in model '{}' is not at '{}'; set LAB_MODELS_DIR to the folder that "
        "holds it",
        model, path.string());
    return path;
  }
  if (model == "smollm2") {
    const auto path = downloaded_models_dir() / "SmolLM2-135M-Instruct.Q4_1.gguf";
    LAB_CHECK(
        std::filesystem::exists(path),
        "the model 'smollm2' is not on this machine yet; get it with: ./lab model smollm2");
    return path;
  }
  LAB_CHECK(
      std::filesystem::exists(model),
      "no model '{}': it is neither target, draft or smollm2 nor a file or folder; check "
      "the path",
      model);
  return model;
}

}  // namespace lab
