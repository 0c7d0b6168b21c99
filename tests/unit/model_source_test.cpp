// Vocabularies of both formats, and opening files and folders that are or are not models.
#include "lab/model/model_source.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "lab/core/error.hpp"
#include "lab/model/gguf_model.hpp"
#include "support/catch.hpp"
#include "support/tiny_model.hpp"

using namespace lab;
using namespace lab::test;

namespace {

void check_open_refused(const std::filesystem::path& path, const std::string& message) {
  CHECK_THROWS_WITH(open_model(path), ContainsSubstring(message));
}

/// tiny_gguf's metadata, changed, as a vocabulary.
Vocab vocab_with(const std::function<void(std::map<std::string, GgufValue>&)>& change) {
  const std::vector<std::byte> bytes = tiny_gguf(make_tiny_model()).bytes();
  const GgufFile file = parse_gguf(bytes);
  std::map<std::string, GgufValue> entries;
  for (const auto& [key, value] : file.metadata.entries()) entries[key] = value;
  change(entries);
  GgufMetadata m;
  for (const auto& [key, value] : entries) m.add(key, value);
  return vocab_from_gguf(m);
}

Vocab vocab_with(const std::string& key, const GgufValue& value) {
  return vocab_with([&](auto& entries) { entries["tokenizer.ggml." + key] = value; });
}

Vocab vocab_without(const std::string& key) {
  return vocab_with([&](auto& entries) { entries.erase("tokenizer.ggml." + key); });
}

}  // namespace

// ----- the vocabulary of GGUF

TEST_CASE("tokenizer metadata: absent keys have their defaults") {
  const Vocab no_types = vocab_without("token_type");
  CHECK(std::ranges::count(no_types.types, TokenType::normal) == 271);
  CHECK(!vocab_without("bos_token_id").bos.has_value());
  const Vocab no_eos = vocab_without("eos_token_id");
  CHECK(!no_eos.eos.has_value());
  CHECK(no_eos.end_of_generation == std::vector<std::int32_t>{0, 2});  // by their texts
  CHECK(vocab_without("pre").pre == "gpt-2");
  CHECK(!vocab_without("add_bos_token").add_bos);
  CHECK_THROWS_WITH(vocab_without("merges"), ContainsSubstring("merges' is missing"));
  CHECK_THROWS_WITH(vocab_without("tokens"), ContainsSubstring("tokens' is missing"));
  CHECK_THROWS_WITH(vocab_without("model"), ContainsSubstring("model' is missing"));
}

TEST_CASE("tokenizer metadata: pre-tokenizers have one name") {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"default", "gpt-2"}, {"gpt-2", "gpt-2"},         {"gpt2", "gpt-2"},
      {"smollm", "smollm"}, {"llama-bpe", "llama-bpe"}, {"llama3", "llama-bpe"},
      {"qwen2", "qwen2"}};
  for (const auto& [theirs, ours] : names) {
    const Vocab v = vocab_with("pre", theirs);
    CHECK(v.pre == ours);
    CHECK(v.ignore_merges == (ours == "llama-bpe"));
  }
  CHECK_THROWS_WITH(vocab_with("pre", "tekken"),
                    ContainsSubstring("'tekken', supported are"));
  CHECK_THROWS_WITH(vocab_with("model", "llama"),
                    ContainsSubstring("'llama', only 'gpt2'"));
}

TEST_CASE("tokenizer metadata: llama-bpe puts a bos first unless told otherwise") {
  const auto llama = [](const std::string& key, const GgufValue& value) {
    return vocab_with([&](auto& entries) {
      entries["tokenizer.ggml.pre"] = "llama-bpe";
      entries.erase("tokenizer.ggml.add_bos_token");
      if (!key.empty()) entries["tokenizer.ggml." + key] = value;
    });
  };
  CHECK(llama("", false).add_bos);
  CHECK(!llama("add_bos_token", false).add_bos);
  CHECK_THROWS_WITH(llama("bos_token_id", std::uint32_t{0xffffffff}),
                    ContainsSubstring("no bos_token_id"));
}

TEST_CASE("tokenizer metadata: what does not fit the tokens is refused") {
  CHECK_THROWS_WITH(vocab_with("token_type", std::vector<std::int32_t>(270, 1)),
                    ContainsSubstring("270 entries for 271 tokens"));
  CHECK_THROWS_WITH(vocab_with("token_type", std::vector<std::int32_t>(271, 7)),
                    ContainsSubstring("is 7, expected 1 to 6"));
  for (const char* key :
       {"bos_token_id", "eos_token_id", "eot_token_id", "padding_token_id"})
    CHECK_THROWS_WITH(vocab_with(key, std::uint32_t{271}), ContainsSubstring(key));
  CHECK(!vocab_with("padding_token_id", std::int32_t{-1}).padding.has_value());
  CHECK_THROWS_WITH(vocab_with("tokens", std::vector<std::string>{}),
                    ContainsSubstring("is empty"));
  std::vector<std::string> tokens = mini_vocab().tokens;
  tokens[5] = tokens[4];
  CHECK_THROWS_WITH(vocab_with("tokens", tokens), ContainsSubstring("twice, again at 5"));
  tokens[4] = tokens[5] = "";
  const Vocab v = vocab_with("tokens", tokens);
  CHECK(v.tokens[4] == "[EMPTY_4]");
  CHECK(v.tokens[5] == "[EMPTY_5]");
}

TEST_CASE("tokenizer metadata: every token that ends an answer is found") {
  CHECK(vocab_with("eot_token_id", std::uint32_t{7}).end_of_generation ==
        std::vector<std::int32_t>{0, 2, 7});
  std::vector<std::string> tokens = mini_vocab().tokens;
  tokens[1] = "<|eot_id|>";
  tokens[9] = "<|end|>";  // not a control token
  CHECK(vocab_with("tokens", tokens).end_of_generation ==
        std::vector<std::int32_t>{0, 1, 2});
}

// ----- opening

TEST_CASE("paths that hold no model are refused by name") {
  const TempFolder folder;
  check_open_refused(folder / "nothing", "does not exist");
  check_open_refused(folder.path(), "holds no model");
  check_open_refused("", "does not exist");
  write_file(folder / "empty", "");
  check_open_refused(folder / "empty", "neither GGUF nor safetensors: it has 0 bytes");
  write_file(folder / "text.gguf", "this is not a model");
  check_open_refused(folder / "text.gguf", "neither GGUF nor safetensors");
}

TEST_CASE("the content decides about the format, not the name") {
  const TinyModel m = make_tiny_model();
  const TempFolder folder;
  tiny_gguf(m).write(folder / "model.bin");
  CHECK(open_model(folder / "model.bin").gguf.has_value());
}

TEST_CASE("a folder with one GGUF file opens, one with several models is refused") {
  const TinyModel m = make_tiny_model();
  const TempFolder folder;
  tiny_gguf(m).write(folder / "a.gguf");
  CHECK(open_model(folder.path()).config.name == "tiny");
  tiny_gguf(m).write(folder / "b.gguf");
  check_open_refused(folder.path(), "holds several models (a.gguf, b.gguf)");
}

TEST_CASE("errors inside a model name the file") {
  const TinyModel m = make_tiny_model();
  const TempFolder folder;
  std::vector<std::byte> bytes = tiny_gguf(m).bytes();
  bytes.resize(bytes.size() / 2);
  write_file(folder / "half.gguf", bytes);
  check_open_refused(folder / "half.gguf", "half.gguf': GGUF: the tensors need");

  write_tiny_hf(m, folder / "hf");
  std::filesystem::resize_file(folder / "hf/model.safetensors", 5000);
  check_open_refused(folder / "hf", "model.safetensors': safetensors: tensor");
}

TEST_CASE("a safetensors model without its JSON files is refused") {
  const TinyModel m = make_tiny_model();
  for (const char* file : {"config.json", "tokenizer.json"}) {
    const TempFolder folder;
    write_tiny_hf(m, folder.path());
    std::filesystem::remove(folder / file);
    check_open_refused(folder.path(), std::string(file) + "' is missing");
  }
}

TEST_CASE("a sharded model with a missing file or tensor is refused") {
  const TinyModel m = make_tiny_model();
  const TempFolder folder;
  write_tiny_hf(m, folder / "a", 2);
  std::filesystem::remove(folder / "a/model-2.safetensors");
  check_open_refused(folder / "a",
                     "model-2.safetensors' is missing, but the index lists it");

  write_tiny_hf(m, folder / "b", 2);
  const std::vector<StoredTensor> other = {{"other", DType::f32, {0}, {}}};
  write_file(folder / "b/model-2.safetensors", safetensors_bytes(other));
  check_open_refused(folder / "b", "is missing, but the index lists it for this file");
}

TEST_CASE("a tokenizer with more tokens than the embedding has rows is refused") {
  Config c = tiny_config();
  c.vocab_size = 271;
  const TempFolder folder;
  tiny_gguf(make_tiny_model(c)).write(folder / "equal.gguf");
  CHECK(open_model(folder / "equal.gguf").config.vocab_size == 271);
  c.vocab_size = 270;
  tiny_gguf(make_tiny_model(c)).write(folder / "fewer.gguf");
  check_open_refused(folder / "fewer.gguf",
                     "271 tokens, but the embedding has only 270 rows");
}

TEST_CASE(
    "a model opens from a folder given with or without a slash, or as the current one") {
  const TinyModel m = make_tiny_model();
  const TempFolder folder;
  write_tiny_hf(m, folder / "hf");
  CHECK(open_model(folder / "hf/").config.name == "tiny");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "hf");
  CHECK(open_model("model.safetensors").config.name == "tiny");
  CHECK(open_model(".").config.name == "tiny");
  std::filesystem::current_path(before);
}

TEST_CASE("eos may be a list, in config.json and in generation_config.json") {
  const TinyModel m = make_tiny_model();
  const TempFolder folder;
  write_tiny_hf(m, folder.path());
  nlohmann::json config = tiny_hf_config(m);
  config["eos_token_id"] = {2, 5};
  write_file(folder / "config.json", config.dump());
  write_file(folder / "generation_config.json", R"({"eos_token_id": [2, 6], "top_k": 50})");
  CHECK(open_model(folder.path()).vocab.end_of_generation ==
        std::vector<std::int32_t>{0, 2, 5, 6});
  write_file(folder / "generation_config.json", R"({"eos_token_id": 271})");
  check_open_refused(folder.path(),
                     "'eos_token_id' is 271, but the tokenizer has 271 tokens");
}

TEST_CASE("tokenizer_config.json decides about special tokens and the chat template") {
  const TinyModel m = make_tiny_model();
  const TempFolder folder;
  write_tiny_hf(m, folder.path());
  const auto vocab = [&](const nlohmann::json& config) {
    write_file(folder / "tokenizer_config.json", config.dump());
    return open_model(folder.path()).vocab;
  };
  const Vocab none = vocab(nlohmann::json::object());
  CHECK(none.bos == 1);  // of config.json
  CHECK(none.eos == 2);
  CHECK(!none.padding.has_value());
  CHECK(none.chat_template.empty());
  const Vocab v = vocab({{"bos_token", {{"content", "<|endoftext|>"}}},
                         {"eos_token", "<|im_start|>"},
                         {"pad_token", "<|im_end|>"},
                         {"unk_token", nullptr},
                         {"add_bos_token", true},
                         {"chat_template",
                          {{{"name", "tool_use"}, {"template", "A"}},
                           {{"name", "default"}, {"template", "B"}}}}});
  CHECK(v.bos == 0);
  CHECK(v.eos == 1);
  CHECK(v.padding == 2);
  CHECK(!v.unknown.has_value());
  CHECK(v.add_bos);
  CHECK(v.chat_template == "B");
  CHECK(v.end_of_generation == std::vector<std::int32_t>{0, 1, 2});
  CHECK_THROWS_WITH(vocab({{"eos_token", "<nothing>"}}),
                    ContainsSubstring("which is not a token of tokenizer.json"));
  CHECK_THROWS_WITH(vocab({{"eos_token", 3}}), ContainsSubstring("expected a text"));
  CHECK_THROWS_WITH(vocab({{"add_bos_token", 1}}), ContainsSubstring("true or false"));
  CHECK_THROWS_WITH(vocab({{"chat_template", 1}}),
                    ContainsSubstring("neither a text nor a list"));
  write_file(folder / "chat_template.jinja", "C");
  CHECK(vocab({{"chat_template", "A"}}).chat_template == "C");
}

TEST_CASE("a damaged whole model is an error or opens, and never crashes") {
  Config c = tiny_config();
  c.n_layers = 1;
  c.model_dim = 4;
  c.ffn_dim = 4;
  c.n_heads = 2;
  c.head_dim = 2;
  const std::vector<std::byte> bytes = tiny_gguf(make_tiny_model(c)).bytes();
  Rng rng(3);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[std::size_t(rng.below(std::ssize(bytes)))] = std::byte(rng.below(256));
    try {
      const GgufFile file = parse_gguf(damaged);
      const Checkpoint checkpoint(file.tensors);
      const Config config = config_from_gguf(file.metadata, checkpoint);
      static_cast<void>(vocab_from_gguf(file.metadata));
      static_cast<void>(bind_weights(checkpoint, config, WeightNames::gguf));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}
