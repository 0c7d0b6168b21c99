/// @file
/// The subcommands of the decodelab program. Each takes the arguments after its name and
/// returns an exit code.
#pragma once

namespace lab::tools {

int generate(int argc, char** argv);
int tokenize(int argc, char** argv);
int logits(int argc, char** argv);
int inspect(int argc, char** argv);
int bench(int argc, char** argv);
int perplexity(int argc, char** argv);

}  // namespace lab::tools
