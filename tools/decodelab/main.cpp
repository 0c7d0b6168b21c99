// decodelab: one program, one subcommand for each thing people and scripts ask of the
// library.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <string_view>

#include "commands.hpp"
#include "lab/core/error.hpp"

namespace {

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv);
  std::string_view summary;
};

constexpr std::array kCommands{
    Command{"generate", lab::tools::generate, "let a model go on from a prompt"},
    Command{"tokenize", lab::tools::tokenize, "JSON strings in, JSON arrays of ids out"},
    Command{"logits", lab::tools::logits, "JSON arrays of ids in, next-token logits out"},
    Command{"inspect", lab::tools::inspect, "a model file's metadata and tensors"},
    Command{"bench", lab::tools::bench, "tokens/s and shares of this machine's peaks"},
    Command{"perplexity", lab::tools::perplexity, "how well a model predicts a text"},
};

void print_help() {
  fmt::print("Usage: decodelab COMMAND [OPTIONS]\n\n");
  for (const Command& c : kCommands) fmt::print("  {:<12}{}\n", c.name, c.summary);
  fmt::print(
      "\nOptions of a command: decodelab COMMAND --help\n"
      "Exit codes: 0 done, 1 the input cannot be used, 2 wrong command line,\n"
      "            77 hardware that is not here.\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `decodelab ... | head` ends quietly
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h") return print_help(), 0;
  for (const Command& c : kCommands)
    if (c.name == name)
      return lab::guarded_main(fmt::format("decodelab {}", name),
                               [&] { return c.run(argc - 1, argv + 1); });
  return lab::guarded_main("decodelab", [&]() -> int {
    throw lab::UsageError(name.empty() ? "no command given"
                                       : fmt::format("unknown command '{}'", name));
  });
}
