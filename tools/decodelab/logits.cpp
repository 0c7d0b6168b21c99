// decodelab logits: one JSON array of ids a line in, the next token's logits a line out.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lab/core/error.hpp"
#include "lab/decode/prefill.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "lab/model/model.hpp"
#include "options.hpp"

namespace lab::tools {
namespace {

std::vector<std::int32_t> read_ids(const std::string& line, int number) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  LAB_CHECK(
      json.is_array() && !json.empty(),
      "line {}: expected a JSON array of at least one token id such as [1, 2]; found: "
      "{:.60}",
      number, line);
  std::vector<std::int32_t> ids;
  for (const auto& id : json) {
    LAB_CHECK(id.is_number_integer() && id >= 0 && id <= INT32_MAX,
              "line {}: '{}' is not a token id; ids are whole numbers >= 0", number,
              id.dump());
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

}  // namespace

int logits(int argc, char** argv) {
  cxxopts::Options options(
      "decodelab logits",
      "Reads JSON arrays of token ids, one a line, and writes for each a "
      "JSON array of the V logits that follow its last token (f32).");
  add_common_options(options);
  add_device_options(options, "f32");
  const auto given = parse(options, argc, argv);
  if (!given) return 0;
  apply_threads(*given);
  const LoadedModel loaded = load(*given);
  const auto& model = loaded.model;
  Transformer& transformer = model->transformer();
  for_each_line([&](const std::string& line, int number) {
    const auto ids = read_ids(line, number);
    LAB_CHECK(std::ssize(ids) <= model->config().context_length,
              "line {}: {} tokens, but the model's context holds {}; send fewer", number,
              ids.size(), model->config().context_length);
    const auto cache = make_contiguous_cache(transformer, 1, std::ssize(ids));
    const auto row = prefill(transformer, *cache, ids);
    std::string out = "[";
    for (std::int64_t i = 0; i < row.shape[1]; ++i)
      out += fmt::format("{}{:.9g}", i > 0 ? "," : "", row.data[i]);
    fmt::print("{}]\n", out);
    std::fflush(stdout);  // a caller may wait for the answer before it sends the next line
  });
  return 0;
}

}  // namespace lab::tools
