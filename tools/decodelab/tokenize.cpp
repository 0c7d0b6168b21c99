// decodelab tokenize: one JSON string a line in, one JSON array of ids a line out.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lab/core/error.hpp"
#include "lab/model/find_model.hpp"
#include "lab/model/model_source.hpp"
#include "lab/model/tokenizer.hpp"
#include "options.hpp"

namespace lab::tools {

int tokenize(int argc, char** argv) {
  cxxopts::Options options(
      "decodelab tokenize",
      "Reads JSON strings, one a line, and writes a JSON array of token ids "
      "for each. No bos token is added.");
  add_common_options(options);
  options.add_options()(
      "special", "turn the text of special tokens, such as <|im_end|>, into the tokens");
  const auto given = parse(options, argc, argv);
  if (!given) return 0;
  ModelSource source = open_model(find_model((*given)["model"].as<std::string>()));
  const Tokenizer tokenizer(std::move(source.vocab));
  const Specials specials =
      given->count("special") > 0 ? Specials::parse : Specials::as_text;
  for_each_line([&](const std::string& line, int number) {
    const auto text = nlohmann::json::parse(line, nullptr, false);
    LAB_CHECK(text.is_string(),
              "line {}: expected one JSON string such as \"Hello\"; found: {:.60}", number,
              line);
    fmt::print("{}\n",
               nlohmann::json(tokenizer.encode(text.get<std::string>(), specials)).dump());
    std::fflush(stdout);  // a caller may wait for the answer before it sends the next line
  });
  return 0;
}

}  // namespace lab::tools
