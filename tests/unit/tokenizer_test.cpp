// Tokenizer and StreamDecoder: against golden data of Hugging Face's tokenizers library,
// and by hand-made vocabularies for what that data cannot show.
#include "lab/model/tokenizer.hpp"

#include <random>
#include <thread>

#include "golden/tokenizer/golden.hpp"
#include "lab/model/byte_alphabet.hpp"
#include "lab/model/stream_decoder.hpp"
#include "lab/model/tokenizer_specials.hpp"
#include "lab/model/utf8.hpp"
#include "support/catch.hpp"

using golden::Ids;
using lab::ControlTokens;
using lab::Specials;
using lab::StreamDecoder;
using lab::Tokenizer;
using lab::TokenType;
using lab::Vocab;

namespace {

const std::vector<std::string> kPreTokenizers{"gpt-2", "smollm", "llama-bpe", "qwen2"};

// 3 control tokens, all 256 bytes by code point of their letter, and a few merges.
Vocab mini_vocab() {
  Vocab v;
  v.pre = "smollm";
  v.tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  v.types.assign(3, TokenType::control);
  std::vector<std::string> letters;
  for (int byte = 0; byte < 256; ++byte)
    letters.push_back(lab::alphabet_letter(static_cast<std::uint8_t>(byte)));
  std::sort(letters.begin(), letters.end());  // UTF-8 sorts as code points do
  for (const std::string& letter : letters) v.tokens.push_back(letter);
  v.merges = {"Ġ t", "h e",  "Ġt he", "l l", "Ġ Ġ", "ĠĠ ĠĠ",
              "a a", "aa a", "he ll", "Ã ©", "u s", "us er"};
  for (const std::string& merge : v.merges) {
    std::string token = merge;
    token.erase(token.find(' '), 1);
    if (std::find(v.tokens.begin(), v.tokens.end(), token) == v.tokens.end())
      v.tokens.push_back(token);
  }
  // "us er" needs "er", which no merge builds: the token is in the vocabulary all the same.
  v.tokens.push_back("er");
  v.types.resize(v.tokens.size(), TokenType::normal);
  return v;
}

void add(Vocab& v, const std::string& text, TokenType type) {
  v.tokens.push_back(text);
  v.types.push_back(type);
}

std::string streamed(const Tokenizer& t, const Ids& ids,
                     ControlTokens control = ControlTokens::keep) {
  StreamDecoder decoder(t, control);
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string part = decoder.push(id);
    CHECK(lab::sanitize_utf8(part) == part);
    text += part;
  }
  return text + decoder.finish();
}

}  // namespace

// ----- special tokens

TEST_CASE("special tokens: from the left, the longest at each place") {
  lab::SpecialMatcher m;
  CHECK_FALSE(m.find("anything", 0));
  m.add("", 9);
  CHECK_FALSE(m.find("anything", 0));
  m.add("ab", 1);
  m.add("abcd", 2);
  m.add("bcde", 3);
  CHECK(m.find("xabc", 0)->id == 1);
  CHECK(m.find("xabcd", 0)->id == 2);
  CHECK(m.find("xabcde", 0)->id == 2);  // "bcde" begins later
  CHECK(m.find("xabcde", 2)->id == 3);
  CHECK(m.find("xabcde", 0)->begin == 1);
  CHECK_FALSE(m.find("xabcde", 3));
  CHECK_FALSE(m.find("", 0));
}

// ----- ids

TEST_CASE("tokenizer: the same ids as Hugging Face's, for all strings and pre-tokenizers") {
  for (const std::string& name : kPreTokenizers) {
    INFO(name);
    CHECK(golden::differences(Tokenizer(golden::vocab(name)), "ids_" + name + ".json") ==
          "");
  }
}

TEST_CASE("tokenizer: bytes that the vocabulary lacks are left out before merging") {
  Vocab v = golden::vocab("smollm");
  golden::remove_letters(v, {"j", "X", "Ą", "â"});
  CHECK(golden::differences(Tokenizer(std::move(v)), "ids_missing_bytes.json") == "");
  // Left out first: then the neighbours merge.
  Vocab mini = mini_vocab();
  golden::remove_letters(mini, {"j"});
  const Tokenizer t(std::move(mini));
  CHECK(t.encode("hje") == Ids{260});
  CHECK(t.encode("j").empty());
}

TEST_CASE("tokenizer: the mini vocabulary's known ids") {
  const Tokenizer t(mini_vocab());
  CHECK(t.encode("the") == Ids{86, 260});
  CHECK(t.encode(" the") == Ids{261});
  CHECK(t.encode("hello the") == Ids{267, 81, 261});
  CHECK(t.encode("aaaa") == Ids{265, 265});
  CHECK(t.encode("aaaaaa") == Ids{265, 265, 265});
  CHECK(t.encode("     x") == Ids{264, 223, 90});
  CHECK(t.encode("\u00e9") == Ids{268});
  CHECK(t.encode("e\u0301") == Ids{71, 139, 226});
  CHECK(t.encode("user 12") == Ids{269, 71, 84, 223, 19, 20});
  CHECK(t.encode("\n\n") == Ids{201, 201});
  CHECK(t.encode("THE") == Ids{54, 42, 39});
  CHECK(t.encode("a\u00a0the") == Ids{67, 129, 257, 86, 260});
  CHECK(t.encode("").empty());
}

TEST_CASE("tokenizer: control tokens are text unless parsed, user-defined ones never are") {
  Vocab v = mini_vocab();
  add(v, "<think>", TokenType::user_defined);  // 272
  add(v, "<unk>", TokenType::unknown);         // 273
  add(v, "[PAD274]", TokenType::unused);
  REQUIRE(v.tokens.size() == 275);
  const Tokenizer t(std::move(v));
  CHECK(t.encode("a<|im_end|>", Specials::parse) == Ids{67, 2});
  CHECK(t.encode("a<|im_end|>").size() > 2);
  CHECK(t.encode("<think>", Specials::as_text) == Ids{272});
  CHECK(t.encode("<think>", Specials::parse) == Ids{272});
  CHECK(t.encode("<unk>", Specials::parse) == Ids{273});
  CHECK(t.encode("<unk>").size() > 1);
  CHECK(t.encode("[PAD274]", Specials::parse).size() > 1);
  CHECK(t.piece(274) == "");
  CHECK(t.find_special("<|im_end|>") == 2);
  CHECK(t.find_special("<think>") == 272);
  CHECK_FALSE(t.find_special("the"));
  CHECK_FALSE(t.find_special("<think>a"));
  CHECK_FALSE(t.find_special("a<think>"));
  CHECK_FALSE(t.find_special(""));
  CHECK(t.is_control(2));
  CHECK_FALSE(t.is_control(272));
  CHECK_FALSE(t.is_control(-1));
  CHECK_FALSE(t.is_control(275));
}

TEST_CASE("tokenizer: no text is merged into a control token") {
  Vocab v = mini_vocab();
  add(v, "xy", TokenType::control);
  v.merges.push_back("x y");
  const Tokenizer t(v);
  CHECK(t.encode("xy") == Ids{90, 91});
  // Nor found whole.
  v.ignore_merges = true;
  CHECK(Tokenizer(v).encode("xy") == Ids{90, 91});
}

TEST_CASE("tokenizer: with ignore_merges a word of the vocabulary is not merged") {
  Vocab v = mini_vocab();  // "er" is a token that no merge makes
  CHECK(Tokenizer(v).encode("er") == Ids{71, 84});
  v.ignore_merges = true;
  const Tokenizer t(v);
  CHECK(t.encode("er") == Ids{271});
  CHECK(t.encode("user") == Ids{270});
  CHECK(t.encode("users") == Ids{269, 71, 84, 85});
}

TEST_CASE("tokenizer: bos is added by prompt_ids, and only if the vocabulary wants it") {
  Vocab v = mini_vocab();
  v.bos = 1;
  CHECK(prompt_ids(Tokenizer(v), "the") == Ids{86, 260});
  v.add_bos = true;
  const Tokenizer t(v);
  CHECK(prompt_ids(t, "the") == Ids{1, 86, 260});
  CHECK(prompt_ids(t, "") == Ids{1});
  CHECK(prompt_ids(t, "<|im_end|>", Specials::parse) == Ids{1, 2});
  CHECK(t.encode("the") == Ids{86, 260});
}

TEST_CASE("tokenizer: which tokens end an answer") {
  Vocab v = mini_vocab();
  CHECK_FALSE(Tokenizer(v).is_end(0));
  v.eos = 0;
  v.end_of_generation = {2};
  const Tokenizer t(v);
  CHECK(t.is_end(0));
  CHECK(t.is_end(2));
  CHECK_FALSE(t.is_end(1));
  CHECK_FALSE(t.is_end(-1));
}

TEST_CASE("tokenizer: long runs are not quadratic") {
  const Tokenizer t(golden::vocab("gpt-2")), llama(golden::vocab("llama-bpe"));
  const std::size_t n = 300000;
  for (const std::string part : {"a", " ", "1", "\n", "!", "\u3000", "漢", "\u0301", " \n",
                                 "a ", "<", "<|im_", "'", "\u2028\r", "\xFF"}) {
    std::string text;
    while (text.size() < n) text += part;
    for (const Tokenizer* tokenizer : {&t, &llama}) {
      const Ids ids = tokenizer->encode(text);
      CHECK(tokenizer->decode(ids) == lab::sanitize_utf8(text));
    }
  }
}

// ----- decoding

TEST_CASE("tokenizer: decode undoes encode") {
  for (const std::string& name : kPreTokenizers) {
    const Tokenizer t(golden::vocab(name));
    int n_wrong = 0;
    for (const std::string& text : golden::strings())
      for (const Specials specials : {Specials::as_text, Specials::parse}) {
        const Ids ids = t.encode(text, specials);
        if (t.decode(ids) != text || streamed(t, ids) != text) ++n_wrong;
      }
    CHECK(n_wrong == 0);
  }
}

TEST_CASE("tokenizer: decoding can skip control tokens") {
  const Tokenizer t(mini_vocab());
  const Ids ids{1, 86, 260, 2};
  CHECK(t.decode(ids) == "<|im_start|>the<|im_end|>");
  CHECK(t.decode(ids, ControlTokens::skip) == "the");
  CHECK(streamed(t, ids, ControlTokens::skip) == "the");
  CHECK(t.decode(Ids{}) == "");
  CHECK(t.piece(260) == "he");
}

TEST_CASE("tokenizer: ids out of range are refused") {
  const Tokenizer t(mini_vocab());
  REQUIRE(t.size() == 272);
  CHECK_THROWS_WITH(t.piece(272), ContainsSubstring("272") && ContainsSubstring("271"));
  CHECK_THROWS_AS(t.piece(-1), lab::Error);
  CHECK_THROWS_AS(t.decode(Ids{86, 1000000}), lab::Error);
  StreamDecoder decoder(t);
  CHECK_THROWS_AS(decoder.push(272), lab::Error);
}

TEST_CASE("stream decoder: holds back what is not a whole character yet") {
  Vocab v = mini_vocab();
  const Tokenizer t(v);
  const auto id_of = [&](int byte) {
    const std::string& letter = lab::alphabet_letter(static_cast<std::uint8_t>(byte));
    return static_cast<std::int32_t>(std::find(v.tokens.begin(), v.tokens.end(), letter) -
                                     v.tokens.begin());
  };
  StreamDecoder d(t);
  CHECK(d.push(id_of(0xF0)) == "");
  CHECK(d.push(id_of(0x9F)) == "");
  CHECK(d.push(id_of(0x98)) == "");
  CHECK(d.push(id_of(0x80)) == "\U0001F600");
  CHECK(d.push(id_of('a')) == "a");
  CHECK(d.push(id_of(0xC3)) == "");
  CHECK(d.push(id_of('(')) == "\uFFFD(");
  CHECK(d.push(id_of(0xFF)) == "\uFFFD");
  CHECK(d.push(id_of(0xE2)) == "");
  CHECK(d.push(2) == "\uFFFD<|im_end|>");
  CHECK(d.push(id_of(0xE2)) == "");
  CHECK(d.finish() == "\uFFFD");
  CHECK(d.finish() == "");
}

TEST_CASE("stream decoder: any ids give what decode gives, made valid") {
  const Tokenizer t(golden::vocab("gpt-2"));
  std::mt19937 random(7);  // NOLINT: reproducible
  for (int round = 0; round < 300; ++round) {
    Ids ids(random() % 20);
    // Mostly single bytes: longer tokens are mostly valid text.
    for (std::int32_t& id : ids)
      id = static_cast<std::int32_t>(random() % (random() % 4 ? 259 : t.size()));
    CHECK(streamed(t, ids) == lab::sanitize_utf8(t.decode(ids)));
    CHECK(streamed(t, ids, ControlTokens::skip) ==
          lab::sanitize_utf8(t.decode(ids, ControlTokens::skip)));
  }
}

// ----- use from several threads, moving

TEST_CASE("tokenizer: several threads can share one") {
  const Tokenizer t(golden::vocab("llama-bpe"));
  const std::vector<std::string> texts = golden::strings();
  const auto all = [&] {
    std::vector<Ids> ids;
    for (const std::string& text : texts) ids.push_back(t.encode(text, Specials::parse));
    return ids;
  };
  const std::vector<Ids> expected = all();
  std::vector<std::vector<Ids>> got(4);
  std::vector<std::thread> threads;
  for (auto& result : got) threads.emplace_back([&] { result = all(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : got) CHECK(result == expected);
}

TEST_CASE("tokenizer: can be moved, also under a piece's feet") {
  Tokenizer a(mini_vocab());
  const std::string_view piece = a.piece(260);
  Tokenizer b(std::move(a));
  CHECK(piece == "he");
  CHECK(b.encode("the") == Ids{86, 260});
  a = std::move(b);
  CHECK(a.encode("the") == Ids{86, 260});
}

// ----- damaged vocabularies

TEST_CASE("tokenizer: a damaged vocabulary is refused") {
  const auto refuses = [](auto&& damage, const char* message) {
    Vocab v = mini_vocab();
    damage(v);
    CHECK_THROWS_WITH(Tokenizer(std::move(v)), ContainsSubstring(message));
  };
  CHECK_NOTHROW(Tokenizer(mini_vocab()));
  for (const char* never_wanted : {"zz a", "a zz"}) {
    Vocab v = mini_vocab();
    v.merges.push_back(never_wanted);
    CHECK(Tokenizer(std::move(v)).encode("a zz a") ==
          Tokenizer(mini_vocab()).encode("a zz a"));
  }
  refuses([](Vocab& v) { v = {}; }, "empty");
  refuses([](Vocab& v) { v.types.pop_back(); }, "271 token types");
  refuses([](Vocab& v) { v.types[5] = TokenType::byte; }, "type 6");
  refuses([](Vocab& v) { v.types[5] = TokenType{0}; }, "type 0");
  refuses([](Vocab& v) { add(v, "he", TokenType::normal); }, "260 and 272");
  refuses([](Vocab& v) { add(v, "he", TokenType::control); }, "260 and 272");
  refuses([](Vocab& v) { v.merges.push_back("ab"); }, "'ab'");
  refuses([](Vocab& v) { v.merges.push_back(""); }, "two tokens");
  refuses([](Vocab& v) { v.merges.push_back("a "); }, "two tokens");
  refuses([](Vocab& v) { v.merges.push_back(" a"); }, "two tokens");
  refuses([](Vocab& v) { v.merges.push_back("a b"); }, "needs the token 'ab'");
  refuses([](Vocab& v) { v.merges.push_back("a a"); }, "occurs twice");
  refuses([](Vocab& v) { v.bos = 272; }, "bos token is 272");
  refuses([](Vocab& v) { v.eos = -1; }, "eos");
  refuses([](Vocab& v) { v.unknown = 999; }, "unknown");
  refuses([](Vocab& v) { v.padding = 999; }, "padding");
  refuses([](Vocab& v) { v.end_of_generation = {0, 999}; }, "end token is 999");
  refuses([](Vocab& v) { v.add_bos = true; }, "names none");
  refuses([](Vocab& v) { v.pre = "default"; }, "'default'");
}

TEST_CASE("tokenizer: empty token texts are never found") {
  Vocab v = mini_vocab();
  add(v, "", TokenType::user_defined);
  add(v, "", TokenType::normal);
  const Tokenizer t(std::move(v));
  CHECK(t.encode("the") == Ids{86, 260});
  CHECK(t.piece(273) == "");
}

TEST_CASE("tokenizer: a normal token outside the alphabet is raw text") {
  Vocab v = mini_vocab();
  add(v, "two words", TokenType::normal);
  const Tokenizer t(std::move(v));
  CHECK(t.piece(272) == "two words");
}
