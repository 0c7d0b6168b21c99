// PreTokenizer, UTF-8 repair and the byte alphabet: against golden data of Hugging Face's
// tokenizers library and of Python.
#include "lab/model/pre_tokenizer.hpp"

#include "golden/tokenizer/golden.hpp"
#include "lab/model/byte_alphabet.hpp"
#include "lab/model/utf8.hpp"
#include "support/catch.hpp"

namespace {

const std::vector<std::string> kPreTokenizers{"gpt-2", "smollm", "llama-bpe", "qwen2"};

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string utf8_of(int c) {
  const auto byte = [](int b) { return static_cast<char>(b); };
  if (c < 0x80) return {byte(c)};
  const char last = byte(0x80 | (c & 63));
  if (c < 0x800) return {byte(0xC0 | c >> 6), last};
  const char middle = byte(0x80 | (c >> 6 & 63));
  if (c < 0x10000) return {byte(0xE0 | c >> 12), middle, last};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), middle, last};
}

}  // namespace

// ----- UTF-8 and the alphabet

TEST_CASE("utf8: ill-formed bytes are replaced as Python replaces them") {
  const auto cases = golden::read("utf8.json").get<std::vector<std::vector<std::string>>>();
  REQUIRE(cases.size() > 300);
  for (const auto& c : cases) {
    INFO(c[0]);
    CHECK(lab::sanitize_utf8(bytes_of(c[0])) == c[1]);
  }
  CHECK(lab::sanitize_utf8("") == "");
  CHECK(lab::sanitize_utf8("\xF0\x9F\x98") == "\uFFFD");    // one character broken off
  CHECK(lab::sanitize_utf8("\xE0\x80") == "\uFFFD\uFFFD");  // overlong
  CHECK(lab::sanitize_utf8("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");  // a surrogate
}

TEST_CASE("utf8: an incomplete character is told from a wrong one") {
  CHECK(lab::next_utf8_unit("\xF0\x9F\x98").incomplete);
  CHECK(lab::next_utf8_unit("\xC3").incomplete);
  CHECK_FALSE(lab::next_utf8_unit("\xE0\x80").incomplete);
  CHECK_FALSE(lab::next_utf8_unit("\xC3(").incomplete);
  CHECK_FALSE(lab::next_utf8_unit("\xFF").incomplete);
  CHECK(lab::next_utf8_unit("").length == 0);
}

TEST_CASE("byte alphabet: 256 letters, there and back") {
  CHECK(lab::to_alphabet(" \n\t") == "ĠĊĉ");
  CHECK(lab::to_alphabet("A~\x7F\xAD\xAE") == "A~ġŃ®");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    CHECK(lab::from_alphabet(lab::to_alphabet(one)) == one);
  }
  CHECK(lab::from_alphabet("") == "");
  CHECK_FALSE(lab::from_alphabet("a b"));
  CHECK_FALSE(lab::from_alphabet("漢"));
  CHECK_FALSE(lab::from_alphabet("\xC3"));
  CHECK_FALSE(lab::from_alphabet("\u0144"));  // the first letter after the alphabet
}

// ----- pre-tokenizer

TEST_CASE("pre-tokenizer: the same cuts as Hugging Face's, in all strings") {
  const std::vector<std::string> texts = golden::strings();
  for (const std::string& name : kPreTokenizers) {
    const lab::PreTokenizer pre(name);
    const auto expected = golden::read("pieces_" + name + ".json")
                              .get<std::vector<std::vector<std::size_t>>>();
    REQUIRE(expected.size() == texts.size());
    int n_wrong = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::vector<std::size_t> lengths;
      std::string joined;
      for (const std::string_view word : pre.split(texts[i])) {
        lengths.push_back(word.size());
        joined += word;
      }
      if (lengths == expected[i] && joined == texts[i]) continue;
      if (++n_wrong <= 5) UNSCOPED_INFO(name << " string " << i << ": " << texts[i]);
    }
    CHECK(n_wrong == 0);
  }
}

TEST_CASE(
    "pre-tokenizer: letters, numbers, white space are Hugging Face's, in all Unicode") {
  const lab::PreTokenizer pre("gpt-2");
  const auto joins = [&](const std::string& before, const std::string& c) {
    return pre.split(before + c).size() == 1;
  };
  int n_characters = 0, n_wrong = 0;
  for (const auto& range : golden::read("classes.json"))
    for (int c = range[0]; c <= range[1].get<int>(); ++c) {
      const std::string text = utf8_of(c);
      const char kind = joins("a", text)   ? 'L'
                        : joins("1", text) ? 'N'
                        : joins("!", text) ? 'P'
                                           : 'S';
      ++n_characters;
      if (kind == range[2].get<std::string>()[0]) continue;
      if (++n_wrong <= 5) UNSCOPED_INFO("code point " << c << " is " << kind);
    }
  CHECK(n_wrong == 0);
  CHECK(n_characters > 280000);
}

TEST_CASE("pre-tokenizer: an unknown name is refused") {
  CHECK_THROWS_WITH(lab::PreTokenizer("falcon"), ContainsSubstring("'falcon'"));
  CHECK_THROWS_AS(lab::PreTokenizer(""), lab::Error);
}
