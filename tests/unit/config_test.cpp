// The model's configuration: its checks, RoPE's frequencies, and what GGUF metadata and
// config.json are turned into.
#include "lab/model/config.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/model/gguf_model.hpp"
#include "lab/model/hf_model.hpp"
#include "support/catch.hpp"
#include "support/tiny_model.hpp"

using namespace lab;
using namespace lab::test;

namespace {

void check_invalid(const std::function<void(Config&)>& change, const std::string& message) {
  Config c = tiny_config();
  change(c);
  CHECK_THROWS_WITH(validate(c), ContainsSubstring(message));
}

bool close(float a, double b, double tolerance) { return std::abs(a - b) <= tolerance; }

/// The entries that a llama model needs, by key, so that tests can change some.
using Entries = std::map<std::string, GgufValue>;

Entries llama_entries() {
  return {{"general.architecture", "llama"},
          {"llama.block_count", std::uint32_t{2}},
          {"llama.context_length", std::uint32_t{128}},
          {"llama.embedding_length", std::uint32_t{48}},
          {"llama.feed_forward_length", std::uint32_t{80}},
          {"llama.attention.head_count", std::uint32_t{8}},
          {"llama.attention.layer_norm_rms_epsilon", 1e-6f}};
}

Checkpoint embedding_only(const std::string& name, std::vector<TensorInfo> more = {}) {
  more.push_back({name, "F32", DType::f32, {272, 48}, {}});
  return Checkpoint(std::move(more));
}

Config read_gguf(const Entries& entries, std::vector<TensorInfo> more = {}) {
  GgufMetadata m;
  for (const auto& [key, value] : entries) m.add(key, value);
  return config_from_gguf(m, embedding_only("token_embd.weight", std::move(more)));
}

Config read_gguf_with(const std::string& key, GgufValue value) {
  Entries entries = llama_entries();
  entries[key] = std::move(value);
  return read_gguf(entries);
}

Config read_hf(const nlohmann::json& config) {
  return config_from_hf(config.dump(), embedding_only("model.embed_tokens.weight"));
}

Config read_hf_with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = tiny_hf_config(make_tiny_model());
  config[key] = value;
  return read_hf(config);
}

Config read_hf_without(const std::string& key) {
  nlohmann::json config = tiny_hf_config(make_tiny_model());
  config.erase(key);
  return read_hf(config);
}

}  // namespace

TEST_CASE("a valid configuration passes, and each impossible field is named") {
  CHECK_NOTHROW(validate(tiny_config()));
  for (const std::int64_t bad :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    check_invalid([&](Config& c) { c.n_layers = bad; }, "n_layers");
    check_invalid([&](Config& c) { c.model_dim = bad; }, "model_dim");
    check_invalid([&](Config& c) { c.ffn_dim = bad; }, "ffn_dim");
    check_invalid([&](Config& c) { c.n_heads = bad; }, "n_heads");
    check_invalid([&](Config& c) { c.n_kv_heads = bad; }, "n_kv_heads");
    check_invalid([&](Config& c) { c.head_dim = bad; }, "head_dim");
    check_invalid([&](Config& c) { c.vocab_size = bad; }, "vocab_size");
    check_invalid([&](Config& c) { c.context_length = bad; }, "context_length");
  }
  check_invalid([](Config& c) { c.n_kv_heads = 3; }, "n_heads=8 is not a multiple");
  check_invalid([](Config& c) { c.head_dim = 9; }, "head_dim=9 is odd");
  for (const float bad : {0.0f, -1.0f, 1.0f, NAN, INFINITY})
    check_invalid([&](Config& c) { c.rms_eps = bad; }, "rms_eps");
  for (const float bad : {0.0f, -1.0f, NAN, INFINITY}) {
    check_invalid([&](Config& c) { c.rope.base = bad; }, "RoPE base");
    check_invalid([&](Config& c) { c.rope.divisors = {1, 1, bad, 1, 1}; }, "RoPE divisor");
  }
  check_invalid([](Config& c) { c.rope.divisors = {1, 1, 1, 1}; }, "4 RoPE divisors");
}

TEST_CASE("inverse frequencies are base^(-2i/Dh), divided by the divisors") {
  Config c = tiny_config();
  c.head_dim = 4;
  c.rope.base = 100;
  CHECK(rope_inverse_frequencies(c) == std::vector<float>{1.0f, 0.1f});
  c.rope.divisors = {2, 4};
  CHECK(rope_inverse_frequencies(c) == std::vector<float>{0.5f, 0.1f / 4});
  c.head_dim = 64;
  c.rope = {100000, RopeLayout::interleaved, {}};
  const std::vector<float> f = rope_inverse_frequencies(c);
  REQUIRE(f.size() == 32);
  for (std::size_t i = 0; i < 32; ++i)
    CHECK(f[i] == static_cast<float>(std::pow(100000.0, -double(i) / 32)));
}

TEST_CASE("llama3 scaling gives the divisors of Llama-3.2-1B") {
  const std::vector<float> d = llama3_rope_divisors({32, 1, 4, 8192}, 500000, 64);
  REQUIRE(d.size() == 32);
  for (std::size_t i = 0; i < 15; ++i) CHECK(d[i] == 1.0f);
  CHECK(close(d[15], 1.651329, 1e-6));
  CHECK(close(d[16], 3.292262, 1e-6));
  CHECK(close(d[17], 9.666729, 1e-6));
  for (std::size_t i = 18; i < 32; ++i) CHECK(d[i] == 32.0f);
}

TEST_CASE("impossible RoPE scalings are refused") {
  const auto llama3 = [](Llama3RopeScaling s) { return llama3_rope_divisors(s, 10000, 8); };
  CHECK_THROWS_AS(llama3({0, 1, 4, 8192}), Error);
  CHECK_THROWS_AS(llama3({NAN, 1, 4, 8192}), Error);
  CHECK_THROWS_AS(llama3({8, 0, 4, 8192}), Error);
  CHECK_THROWS_AS(llama3({8, 4, 4, 8192}), Error);
  CHECK_THROWS_AS(llama3({8, 1, 4, 0}), Error);
  CHECK(linear_rope_divisors(4, 6) == std::vector<float>{4, 4, 4});
  for (const double bad : {0.0, -1.0, double(NAN), double(INFINITY)})
    CHECK_THROWS_AS(linear_rope_divisors(bad, 8), Error);
}

// ----- GGUF

TEST_CASE("GGUF: keys that may be absent have their defaults") {
  const Config c = read_gguf(llama_entries());
  CHECK(c.architecture == "llama");
  CHECK(c.name.empty());
  CHECK(c.n_layers == 2);
  CHECK(c.model_dim == 48);
  CHECK(c.ffn_dim == 80);
  CHECK(c.n_heads == 8);
  CHECK(c.n_kv_heads == 8);
  CHECK(c.head_dim == 6);
  CHECK(c.vocab_size == 272);  // of the tensor
  CHECK(c.context_length == 128);
  CHECK(c.rms_eps == 1e-6f);
  CHECK(c.rope.base == 10000);
  CHECK(c.rope.layout == RopeLayout::interleaved);
  CHECK(c.rope.divisors.empty());
  CHECK(!c.tie_embeddings);
}

TEST_CASE("GGUF: keys that are there are used, as u32, u64 or i32") {
  Entries entries = llama_entries();
  entries["general.name"] = "tiny";
  entries["llama.block_count"] = std::uint64_t{3};
  entries["llama.context_length"] = std::int32_t{64};
  entries["llama.attention.head_count_kv"] = std::uint32_t{2};
  entries["llama.attention.key_length"] = std::uint32_t{10};
  entries["llama.attention.value_length"] = std::uint32_t{10};
  entries["llama.rope.dimension_count"] = std::uint32_t{10};
  entries["llama.rope.freq_base"] = 500000.0f;
  const Config c = read_gguf(entries);
  CHECK(c.name == "tiny");
  CHECK(c.n_layers == 3);
  CHECK(c.context_length == 64);
  CHECK(c.n_kv_heads == 2);
  CHECK(c.head_dim == 10);
  CHECK(c.rope.base == 500000);
}

TEST_CASE("GGUF: every required key is named when it is missing") {
  for (const auto& [key, value] : llama_entries()) {
    Entries entries = llama_entries();
    entries.erase(key);
    CHECK_THROWS_WITH(read_gguf(entries), ContainsSubstring("'" + key + "' is missing"));
  }
}

TEST_CASE("GGUF: models that are not plain Llama are refused by name") {
  CHECK_THROWS_WITH(read_gguf_with("general.architecture", "qwen2"),
                    ContainsSubstring("architecture is 'qwen2', only 'llama'"));
  CHECK_THROWS_WITH(read_gguf_with("split.count", std::uint16_t{3}),
                    ContainsSubstring("split into 3"));
  CHECK_NOTHROW(read_gguf_with("split.count", std::uint16_t{1}));
  CHECK_THROWS_WITH(read_gguf_with("llama.expert_count", std::uint32_t{8}),
                    ContainsSubstring("mixture of 8 experts"));
  for (const char* type : {"yarn", "longrope", ""})
    CHECK_THROWS_WITH(read_gguf_with("llama.rope.scaling.type", type),
                      ContainsSubstring("supported are 'none' and 'linear'"));
  CHECK_THROWS_WITH(read_gguf_with("llama.attention.value_length", std::uint32_t{8}),
                    ContainsSubstring("value length 8"));
  CHECK_THROWS_WITH(read_gguf_with("llama.rope.dimension_count", std::uint32_t{4}),
                    ContainsSubstring("RoPE dimensions 4"));
}

TEST_CASE("GGUF: hostile sizes are refused before they cost memory") {
  Entries entries = llama_entries();
  for (const char* key : {"key_length", "value_length"})
    entries[std::string("llama.attention.") + key] = std::uint64_t{1} << 60;
  entries["llama.rope.dimension_count"] = std::uint64_t{1} << 60;
  entries["llama.rope.scaling.type"] = "linear";
  entries["llama.rope.scaling.factor"] = 4.0f;
  CHECK_THROWS_WITH(read_gguf(entries), ContainsSubstring("head_dim"));
  CHECK_THROWS_WITH(read_gguf_with("llama.attention.head_count", std::uint32_t{0}),
                    ContainsSubstring("head_count is 0"));
  CHECK_THROWS_WITH(read_gguf_with("llama.attention.head_count", std::uint32_t{7}),
                    ContainsSubstring("must be a multiple"));
}

TEST_CASE("GGUF: linear scaling and rope_freqs.weight become divisors") {
  Entries entries = llama_entries();
  entries["llama.rope.scaling.type"] = "linear";
  CHECK(read_gguf(entries).rope.divisors.empty());
  entries["llama.rope.scaling.factor"] = 4.0f;
  CHECK(read_gguf(entries).rope.divisors == std::vector<float>{4, 4, 4});
  CHECK(read_gguf_with("llama.rope.scale_linear", 2.0f).rope.divisors ==
        std::vector<float>{2, 2, 2});
  CHECK_THROWS_AS(read_gguf_with("llama.rope.scale_linear", 0.0f), Error);

  const std::vector<float> stored = {1, 2, 8};
  const TensorInfo tensor{
      "rope_freqs.weight", "F32", DType::f32, {3}, std::as_bytes(std::span(stored))};
  CHECK(read_gguf(llama_entries(), {tensor}).rope.divisors == stored);
  CHECK(read_gguf(entries, {tensor}).rope.divisors == std::vector<float>{4, 8, 32});
  TensorInfo wrong = tensor;
  wrong.shape = {4};
  CHECK_THROWS_WITH(
      read_gguf(llama_entries(), {wrong}),
      ContainsSubstring("'rope_freqs.weight': expected shape (3), found (4)"));
}

TEST_CASE("GGUF: a file without an embedding matrix is refused") {
  GgufMetadata m;
  for (const auto& [key, value] : llama_entries()) m.add(key, value);
  CHECK_THROWS_WITH(config_from_gguf(m, Checkpoint()),
                    ContainsSubstring("token_embd.weight"));
}

// ----- Hugging Face

TEST_CASE("config.json: the values and the absent ones") {
  const Config c = read_hf(tiny_hf_config(make_tiny_model()));
  CHECK(c.architecture == "llama");
  CHECK(c.name == "tiny");
  CHECK(c.n_layers == 2);
  CHECK(c.model_dim == 48);
  CHECK(c.ffn_dim == 80);
  CHECK(c.n_heads == 8);
  CHECK(c.n_kv_heads == 2);
  CHECK(c.head_dim == 10);
  CHECK(c.vocab_size == 272);
  CHECK(c.context_length == 128);
  CHECK(c.rms_eps == 1e-5f);
  CHECK(c.rope.base == 10000);
  CHECK(c.rope.layout == RopeLayout::half_split);
  CHECK(c.tie_embeddings);
  CHECK(read_hf_without("num_key_value_heads").n_kv_heads == 8);
  CHECK(read_hf_with("num_key_value_heads", nullptr).n_kv_heads == 8);
  CHECK(read_hf_without("head_dim").head_dim == 6);
  CHECK(read_hf_with("head_dim", nullptr).head_dim == 6);
  CHECK(read_hf_without("rope_theta").rope.base == 10000);
  CHECK(!read_hf_without("tie_word_embeddings").tie_embeddings);
  CHECK(read_hf_without("architectures").n_layers == 2);
  CHECK(read_hf_without("model_type").n_layers == 2);
}

TEST_CASE("config.json: missing and mistyped keys are named") {
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads",
        "max_position_embeddings", "rms_norm_eps"}) {
    CHECK_THROWS_WITH(read_hf_without(key),
                      ContainsSubstring(std::string("'") + key + "' is missing"));
    CHECK_THROWS_WITH(read_hf_with(key, "12"), ContainsSubstring(key));
    CHECK_THROWS_WITH(read_hf_with(key, nlohmann::json::array()), ContainsSubstring(key));
  }
  CHECK_THROWS_WITH(read_hf_with("hidden_size", 1.5), ContainsSubstring("whole number"));
  CHECK_THROWS_WITH(read_hf_with("hidden_size", std::numeric_limits<std::uint64_t>::max()),
                    ContainsSubstring("whole number"));
  CHECK_THROWS_WITH(read_hf_with("num_attention_heads", 0), ContainsSubstring("n_heads"));
  CHECK_THROWS_AS(config_from_hf("[1]", Checkpoint()), Error);
  CHECK_THROWS_AS(config_from_hf("{", Checkpoint()), Error);
  CHECK_THROWS_WITH(config_from_hf(tiny_hf_config(make_tiny_model()).dump(), Checkpoint()),
                    ContainsSubstring("model.embed_tokens.weight"));
}

TEST_CASE("config.json: models that are not plain Llama are refused by name") {
  CHECK_THROWS_WITH(read_hf_with("model_type", "qwen2"), ContainsSubstring("'qwen2'"));
  CHECK_THROWS_WITH(read_hf_with("architectures", {"LlamaForSequenceClassification"}),
                    ContainsSubstring("LlamaForSequenceClassification"));
  CHECK_THROWS_WITH(read_hf_with("attention_bias", true),
                    ContainsSubstring("attention_bias"));
  CHECK_THROWS_WITH(read_hf_with("mlp_bias", true), ContainsSubstring("mlp_bias"));
  CHECK_THROWS_WITH(read_hf_with("hidden_act", "gelu"), ContainsSubstring("'gelu'"));
  CHECK_THROWS_WITH(read_hf_with("partial_rotary_factor", 0.5), ContainsSubstring("0.5"));
  CHECK_THROWS_WITH(read_hf_with("quantization_config", {{"quant_method", "gptq"}}),
                    ContainsSubstring("quantized by another program"));
  nlohmann::json config = tiny_hf_config(make_tiny_model());
  config.erase("model_type");
  config.erase("architectures");
  CHECK_THROWS_WITH(read_hf(config), ContainsSubstring("only 'llama'"));
}

TEST_CASE("config.json: RoPE scaling in its old, present and new places") {
  using json = nlohmann::json;
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 32.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  const std::vector<float> divisors = llama3_rope_divisors({32, 1, 4, 8192}, 10000, 10);
  CHECK(read_hf_with("rope_scaling", llama3).rope.divisors == divisors);
  CHECK(read_hf_with("rope_scaling", {{"type", "linear"}, {"factor", 2.0}}).rope.divisors ==
        std::vector<float>(5, 2.0f));
  CHECK(read_hf_with("rope_scaling", {{"rope_type", "default"}}).rope.divisors.empty());
  json parameters = llama3;
  parameters["rope_theta"] = 500000.0;
  json config = tiny_hf_config(make_tiny_model());
  config.erase("rope_theta");
  config["rope_parameters"] = parameters;
  const Config c = read_hf(config);
  CHECK(c.rope.base == 500000);
  CHECK(c.rope.divisors == llama3_rope_divisors({32, 1, 4, 8192}, 500000, 10));
  for (const char* type : {"yarn", "dynamic", "longrope"})
    CHECK_THROWS_WITH(read_hf_with("rope_scaling", {{"rope_type", type}, {"factor", 2.0}}),
                      ContainsSubstring(type));
  CHECK_THROWS_WITH(read_hf_with("rope_scaling", {{"rope_type", "linear"}}),
                    ContainsSubstring("'factor' is missing"));
  CHECK_THROWS_WITH(read_hf_with("rope_scaling", 2),
                    ContainsSubstring("expected an object"));
}
