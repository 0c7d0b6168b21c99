// decodelab generate --samples, --beams: several answers to one prompt.
#pragma once

#include <nlohmann/json.hpp>

#include "lab/decode/generate.hpp"
#include "options.hpp"

namespace lab::tools {

/// Declares --samples, --beams and --length-penalty.
void add_answers_options(cxxopts::Options& options);

/// @return whether they ask for something else than one answer
/// @throws UsageError if they contradict each other or are out of range
bool several_answers(const cxxopts::ParseResult& given);

/// Makes the answers and prints them, best or first one first.
void print_answers(const cxxopts::ParseResult& given, const LoadedModel& loaded,
                   const std::vector<std::int32_t>& prompt, const GenerateOptions& options,
                   DType kv_dtype);

}  // namespace lab::tools
