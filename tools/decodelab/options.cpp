#include "options.hpp"

#include <fmt/format.h>

#include <iostream>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/model/find_model.hpp"

namespace lab::tools {

void add_common_options(cxxopts::Options& options) {
  options.add_options()  //
      ("model", "target, draft, smollm2, or the path of a GGUF or safetensors model",
       cxxopts::value<std::string>()->default_value("target"))  //
      ("threads", "threads; 0: one per physical core",
       cxxopts::value<std::string>()->default_value("0"))  //
      ("h,help", "print this help");
}

void add_device_options(cxxopts::Options& options, const char* activations) {
  options.add_options()  //
      ("device",
       "cpu, cuda (an NVIDIA GPU), or simt (the same CUDA kernels, emulated on the CPU)",
       cxxopts::value<std::string>()->default_value("cpu"))  //
      ("activations",
       "how a CPU multiplies quantised weights: int8 (fast; activations rounded to 8 "
       "bits), "
       "f32 (exact), or auto: int8 for quantised weights, f32 for others",
       cxxopts::value<std::string>()->default_value(activations));
}

std::optional<cxxopts::ParseResult> parse(cxxopts::Options& options, int argc,
                                          char** argv) {
  try {
    cxxopts::ParseResult given = options.parse(argc, argv);
    if (given.count("help") > 0) {
      fmt::print("{}", options.help());
      return std::nullopt;
    }
    if (!given.unmatched().empty())
      throw UsageError(fmt::format("unexpected argument '{}'", given.unmatched().front()));
    return given;
  } catch (const cxxopts::exceptions::exception& e) {
    throw UsageError(e.what());
  }
}

const char* name(Activations activations) {
  return activations == Activations::int8 ? "int8" : "f32";
}

namespace {

/// Whether most of a model's multiplications are with quantised weights.
bool is_quantised(const ModelSource& source) {
  return !source.weights.layers.empty() &&
         dtype_info(source.weights.layers.front().up.dtype).block_size > 1;
}

Activations choose_activations(const std::string& wanted, const std::string& device,
                               const ModelSource& source) {
  if (wanted == "f32") return Activations::f32;
  if (wanted != "int8" && wanted != "auto")
    throw UsageError(fmt::format("--activations is '{}'; give auto, f32 or int8", wanted));
  if (wanted == "int8" && device != "cpu")
    throw UsageError(fmt::format(
        "--activations int8 is for --device cpu; {} computes with f32", device));
  return device == "cpu" && is_quantised(source) ? Activations::int8 : Activations::f32;
}

}  // namespace

LoadedModel load(const cxxopts::ParseResult& given) {
  const auto device = given["device"].as<std::string>();
  make_device(device);  // a wrong or missing device is known before the model is read
  ModelSource source = open_model(find_model(given["model"].as<std::string>()));
  LoadedModel loaded;
  loaded.activations =
      choose_activations(given["activations"].as<std::string>(), device, source);
  loaded.device = make_device(device, loaded.activations);
  loaded.model = std::make_unique<Model>(std::move(source), *loaded.device);
  return loaded;
}

void apply_threads(const cxxopts::ParseResult& given) {
  const auto& text = given["threads"].as<std::string>();
  int threads = 0;
  try {
    std::size_t used = 0;
    threads = std::stoi(text, &used);
    if (used != text.size()) threads = -1;
  } catch (const std::exception&) {
    threads = -1;
  }
  if (threads < 0 || threads > 1024)
    throw UsageError(fmt::format("--threads is '{}'; give a number from 0 to 1024", text));
  set_n_threads(threads == 0 ? default_n_threads() : threads);
}

DType kv_dtype(const std::string& name) {
  for (const DType d : {DType::f32, DType::f16, DType::bf16}) {
    const char* lower = d == DType::f32 ? "f32" : d == DType::f16 ? "f16" : "bf16";
    if (name == lower) return d;
  }
  throw UsageError(fmt::format("--kv-dtype is '{}'; give f32, f16 or bf16", name));
}

void for_each_line(const std::function<void(const std::string&, int)>& on_line) {
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number)
    if (line.find_first_not_of(" \t\r") != std::string::npos) on_line(line, number);
}

}  // namespace lab::tools
