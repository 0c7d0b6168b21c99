/// @file
/// Where models are: built in, downloaded, or anywhere on the disk.
#pragma once

#include <filesystem>
#include <string>

namespace lab {

/// The folder of the built-in models: the environment variable LAB_MODELS_DIR, else the
/// `models` folder of the source tree this was built from.
std::filesystem::path builtin_models_dir();

/// The folder that `./lab model NAME` downloads to: $XDG_CACHE_HOME/decodelab/models, by
/// default ~/.cache/decodelab/models.
std::filesystem::path downloaded_models_dir();

/// @param model  "target", "draft" (built in), "smollm2" (downloaded), or a path
/// @return the path to open
/// @throws Error if it does not exist, saying how to get it
std::filesystem::path find_model(const std::string& model);

}  // namespace lab
