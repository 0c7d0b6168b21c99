/// @file
/// What the subcommands' command lines have in common.
#pragma once

// cxxopts would split a text given twice at its commas.
#define CXXOPTS_VECTOR_DELIMITER (char)0
#include <cxxopts.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lab/core/dtype.hpp"
#include "lab/device/device.hpp"
#include "lab/model/model.hpp"

namespace lab::tools {

/// Adds --model, --threads and --help.
void add_common_options(cxxopts::Options& options);

/// Adds --device and --activations.
/// @param activations  default of --activations: auto, f32 or int8
void add_device_options(cxxopts::Options& options, const char* activations);

/// Parses, and turns every mistake into a UsageError.
/// @return nothing if --help was asked for and has been printed
std::optional<cxxopts::ParseResult> parse(cxxopts::Options& options, int argc, char** argv);

/// The model and where it runs.
struct LoadedModel {
  std::unique_ptr<Device> device;
  Activations activations;  ///< as chosen; a GPU has f32 only
  std::unique_ptr<Model> model;
};
/// Loads --model on --device. --activations auto is int8 where a CPU multiplies quantised
/// weights, f32 elsewhere.
LoadedModel load(const cxxopts::ParseResult& given);

/// @return "f32" or "int8"
const char* name(Activations activations);

/// Sets the number of threads as --threads says; 0 is one per physical core.
void apply_threads(const cxxopts::ParseResult& given);

/// @return f32, f16 or bf16  @throws UsageError for another name
DType kv_dtype(const std::string& name);

/// Calls `on_line(line, number)` for every line of standard input that is not blank.
void for_each_line(const std::function<void(const std::string& line, int number)>& on_line);

}  // namespace lab::tools
