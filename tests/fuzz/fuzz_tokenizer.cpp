// Any bytes, encoded with each pre-tokenizer and decoded again: the text comes back, made
// valid UTF-8, and piece by piece the same. The first byte chooses what is done.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lab/model/hf_tokenizer.hpp"
#include "lab/model/stream_decoder.hpp"
#include "lab/model/tokenizer.hpp"
#include "lab/model/utf8.hpp"

namespace {

using lab::Specials;
using lab::Tokenizer;

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> kTokenizers = [] {
    std::vector<Tokenizer> all;
    for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
      lab::Vocab vocab = lab::load_hf_vocab(LAB_GOLDEN "/tokenizer/tokenizer.json");
      vocab.pre = pre;
      vocab.ignore_merges = vocab.pre == "llama-bpe";
      all.emplace_back(std::move(vocab));
    }
    return all;
  }();
  return kTokenizers;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  lab::StreamDecoder decoder(tokenizer);
  std::string text;
  for (const std::int32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

// The bytes as ids, so that characters begin and break off anywhere.
void decode_ids(const Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2)
    ids.push_back((static_cast<std::uint8_t>(bytes[i]) * 256 +
                   static_cast<std::uint8_t>(bytes[i + 1])) %
                  static_cast<std::int32_t>(tokenizer.size()));
  if (streamed(tokenizer, ids) != lab::sanitize_utf8(tokenizer.decode(ids))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Tokenizer& tokenizer = tokenizers()[data[0] % 4];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 8) {
    decode_ids(tokenizer, text);
    return 0;
  }
  const auto ids =
      tokenizer.encode(text, data[0] & 4 ? Specials::parse : Specials::as_text);
  const std::string clean = lab::sanitize_utf8(text);
  if (tokenizer.decode(ids) != clean || streamed(tokenizer, ids) != clean) std::abort();
  return 0;
}
