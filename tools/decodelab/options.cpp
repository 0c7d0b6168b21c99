#include "options.hpp"

#include <fmt/format.h>

#include <iostream>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"

namespace lab::tools {

void add_common_options(cxxopts::Options& options) {
  options.add_options()  //
      ("model", "target, draft, smollm2, or the path of a GGUF or safetensors model",
       cxxopts::value<std::string>()->default_value("target"))  //
      ("device",
       "cpu, cuda (an NVIDIA GPU), or simt (the same CUDA kernels, emulated on the CPU)",
       cxxopts::value<std::string>()->default_value("cpu"))  //
      ("threads", "threads; 0: one per physical core",
       cxxopts::value<std::string>()->default_value("0"))  //
      ("h,help", "print this help");
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

LoadedModel load(const cxxopts::ParseResult& given) {
  LoadedModel loaded;
  loaded.device = make_device(given["device"].as<std::string>());
  loaded.model = load_model(given["model"].as<std::string>(), *loaded.device);
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
