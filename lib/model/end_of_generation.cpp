#include "lab/model/end_of_generation.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace lab::detail {

void set_end_of_generation(Vocab& vocab, std::span<const std::int32_t> more) {
  constexpr std::array<std::string_view, 5> kEndings = {
      "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end|>", "<|end_of_text|>"};
  std::vector<std::int32_t>& ids = vocab.end_of_generation;
  ids.assign(more.begin(), more.end());
  if (vocab.eos) ids.push_back(*vocab.eos);
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i)
    if (vocab.types[i] == TokenType::control &&
        std::ranges::find(kEndings, vocab.tokens[i]) != kEndings.end())
      ids.push_back(static_cast<std::int32_t>(i));
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace lab::detail
