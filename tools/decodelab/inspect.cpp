// decodelab inspect: what is in a model file.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "commands.hpp"
#include "lab/core/error.hpp"
#include "lab/model/find_model.hpp"
#include "lab/model/model_source.hpp"
#include "options.hpp"

namespace lab::tools {
namespace {

std::string printable(const std::string& text) {
  constexpr std::size_t kShown = 60;
  std::string out;
  for (const char c : text.substr(0, kShown))
    out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  return text.size() > kShown ? out + " ..." : out;
}

/// A value on one line; of an array, its first elements.
std::string value_text(const GgufValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return printable(v);
        } else if constexpr (std::is_same_v<T, GgufArray>) {
          return std::visit(
              [](const auto& array) -> std::string {
                using A = std::decay_t<decltype(array)>;
                if constexpr (std::is_same_v<A, std::monostate>) {
                  return "";
                } else {
                  std::string out = "[";
                  for (std::size_t i = 0; i < std::min<std::size_t>(6, array.size()); ++i)
                    out += fmt::format("{}{}", i > 0 ? ", " : "", array[i]);
                  return printable(out + (array.size() > 6 ? ", ...]" : "]"));
                }
              },
              v);
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

void print_tensors(const Checkpoint& checkpoint) {
  struct Sum {
    int tensors = 0;
    std::int64_t weights = 0;
    std::size_t bytes = 0;
  };
  std::map<std::string, Sum> sums;
  fmt::print("\n{:<34}{:<8}{:>18}{:>14}\n", "tensor", "type", "shape", "bytes");
  for (const TensorInfo& t : checkpoint.tensors()) {
    fmt::print("{:<34}{:<8}{:>18}{:>14}\n", t.name, t.type_name, shape_text(t.shape),
               t.data.size());
    Sum& sum = sums[t.type_name];
    ++sum.tensors;
    sum.weights += t.size();
    sum.bytes += t.data.size();
  }
  fmt::print("\n{:<8}{:>9}{:>16}{:>16}{:>9}\n", "type", "tensors", "weights", "bytes",
             "bits");
  for (const auto& [type, s] : sums)
    fmt::print("{:<8}{:>9}{:>16}{:>16}{:>9.3f}\n", type, s.tensors, s.weights, s.bytes,
               s.weights > 0 ? 8.0 * double(s.bytes) / double(s.weights) : 0.0);
}

void print_config(const Config& c) {
  fmt::print(
      "{} {}\n  n_layers {}  model_dim {}  ffn_dim {}  n_heads {}  n_kv_heads {}  head_dim "
      "{}\n"
      "  vocab_size {}  context_length {}  rms_eps {:g}  rope_base {:g} {}\n",
      c.architecture, c.name, c.n_layers, c.model_dim, c.ffn_dim, c.n_heads, c.n_kv_heads,
      c.head_dim, c.vocab_size, c.context_length, c.rms_eps, c.rope.base,
      c.rope.layout == RopeLayout::interleaved ? "interleaved" : "half_split");
}

}  // namespace

int inspect(int argc, char** argv) {
  cxxopts::Options options("decodelab inspect",
                           "Prints a model's configuration, metadata and tensors.");
  options.positional_help("FILE");
  options.add_options()  //
      ("file", "target, draft, smollm2, or the path of a model",
       cxxopts::value<std::string>())  //
      ("h,help", "print this help");
  options.parse_positional({"file"});
  const auto given = parse(options, argc, argv);
  if (!given) return 0;
  if (given->count("file") == 0)
    throw UsageError(
        "no file given; give the path of a model, or target, draft or smollm2");
  const auto path = find_model((*given)["file"].as<std::string>());
  const ModelSource source = open_model(path);
  fmt::print("{}\n", path.string());
  print_config(source.config);
  if (source.gguf) {
    fmt::print("\nGGUF version {}, alignment {}\n", source.gguf->version,
               source.gguf->alignment);
    for (const auto& [key, value] : source.gguf->metadata.entries())
      fmt::print("{:<42}{:<16}{}\n", key, gguf_type_text(value), value_text(value));
  }
  print_tensors(source.checkpoint);
  return 0;
}

}  // namespace lab::tools
