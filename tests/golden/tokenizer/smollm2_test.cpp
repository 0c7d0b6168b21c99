// The tokenizer of a real model, SmolLM2-135M-Instruct, against Hugging Face's library. The
// model is not part of the repository: without it this is skipped (exit code 77).
#include <cstdio>
#include <cstdlib>

#include "golden/tokenizer/golden.hpp"
#include "lab/model/find_model.hpp"
#include "lab/model/model_source.hpp"
#include "support/catch.hpp"

using golden::Ids;
using lab::Specials;

namespace {

const lab::Tokenizer& smollm2() {
  static const lab::Tokenizer kTokenizer = [] {
    std::filesystem::path path;
    try {
      path = lab::find_model("smollm2");
    } catch (const lab::Error& error) {
      std::printf("SKIPPED: %s\n", error.what());
      std::exit(lab::kExitUnavailable);
    }
    return lab::Tokenizer(lab::open_model(path).vocab);
  }();
  return kTokenizer;
}

}  // namespace

TEST_CASE("SmolLM2: the same ids as Hugging Face's tokenizers for every string") {
  CHECK(golden::differences(smollm2(), "ids_smollm2.json") == "");
}

TEST_CASE("SmolLM2: the same chats as its Jinja template gives") {
  CHECK(golden::chat_differences(smollm2(), golden::read("chats_smollm2.json"),
                                 "smollm2") == "");
}

TEST_CASE("SmolLM2: known encodings") {
  const lab::Tokenizer& t = smollm2();
  CHECK(t.size() == 49152);
  CHECK(t.encode("Hello world! 123") == Ids{19556, 905, 17, 216, 33, 34, 35});
  CHECK(t.encode("The capital of France is") == Ids{504, 3575, 282, 4649, 314});
  CHECK(t.encode("  multiple   spaces") == Ids{216, 2701, 256, 5600});
  CHECK(t.encode("don't we'll I'M") == Ids{12420, 982, 392, 3060, 339, 23, 61});
  CHECK(t.encode("line1\nline2\r\n\r\nend") ==
        Ids{1311, 33, 198, 1311, 34, 7209, 198, 486});
  const std::string chat = "<|im_start|>user\nHi<|im_end|>\n";
  CHECK(t.encode(chat, Specials::parse) == Ids{1, 4093, 198, 26843, 2, 198});
  CHECK(t.encode(chat) == Ids{44, 108, 306, 79, 3738, 108, 46, 4093, 198, 26843, 44, 108,
                              306, 79, 486, 108, 46, 198});
  // This vocabulary lacks the byte 04.
  CHECK(t.encode("\x04").empty());
  CHECK(t.is_end(*t.find_special("<|im_end|>")));
}
