// Any bytes, taken as a tokenizer.json: an Error, or a vocabulary of which a tokenizer can
// be made, or which that refuses with an Error.
#include <cstdint>
#include <string_view>

#include "lab/core/error.hpp"
#include "lab/model/hf_tokenizer.hpp"
#include "lab/model/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const lab::Tokenizer tokenizer(lab::parse_hf_tokenizer(text));
    static_cast<void>(tokenizer.decode(tokenizer.encode(text, lab::Specials::parse)));
  } catch (const lab::Error&) {
  }
  return 0;
}
