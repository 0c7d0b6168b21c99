#include "lab/model/gguf_model.hpp"

#include <array>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lab/core/error.hpp"
#include "lab/model/end_of_generation.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

using detail::quote;

std::int64_t default_head_dim(std::int64_t model_dim, std::int64_t n_heads) {
  LAB_CHECK(n_heads > 0 && model_dim % n_heads == 0,
            "llama.embedding_length is {} and llama.attention.head_count is {}: without "
            "llama.attention.key_length the first must be a multiple of the second",
            model_dim, n_heads);
  return model_dim / n_heads;
}

void check_supported(const GgufMetadata& meta) {
  const std::string& architecture = meta.string("general.architecture");
  LAB_CHECK(
      architecture == "llama",
      "the model's architecture is {}, only 'llama' is supported (Llama 1 to 3, SmolLM, "
      "TinyLlama and the like)",
      quote(architecture));
  LAB_CHECK(meta.integer("split.count", 1) <= 1,
            "the file is one part of a model that is split into {}; merge the parts first",
            meta.integer("split.count"));
  LAB_CHECK(meta.integer("llama.expert_count", 0) == 0,
            "the model is a mixture of {} experts, which is not supported",
            meta.integer("llama.expert_count"));
}

void multiply(std::vector<float>& divisors, const std::vector<float>& by) {
  if (divisors.empty()) divisors.assign(by.size(), 1.0f);
  for (std::size_t i = 0; i < by.size(); ++i) divisors[i] *= by[i];
}

std::vector<float> read_divisors(const GgufMetadata& meta, const Checkpoint& checkpoint,
                                 std::int64_t head_dim) {
  std::vector<float> divisors;
  const std::string type = meta.string("llama.rope.scaling.type", "none");
  LAB_CHECK(type == "none" || type == "linear",
            "llama.rope.scaling.type is {}, supported are 'none' and 'linear'",
            quote(type));
  const float old_factor = meta.f32("llama.rope.scale_linear", 1);
  const float factor =
      type == "linear" ? meta.f32("llama.rope.scaling.factor", old_factor) : old_factor;
  if (factor != 1) multiply(divisors, linear_rope_divisors(factor, head_dim));
  if (checkpoint.find("rope_freqs.weight") != nullptr) {
    const std::array allowed = {DType::f32};
    const std::array shape = {head_dim / 2};
    const TensorInfo& tensor = checkpoint.bind("rope_freqs.weight", allowed, shape);
    std::vector<float> stored(static_cast<std::size_t>(head_dim / 2));  // (Dh / 2)
    std::memcpy(stored.data(), tensor.data.data(), tensor.data.size());
    multiply(divisors, stored);
  }
  return divisors;
}

/// The file's name of a pre-tokenizer -> ours.
constexpr std::pair<std::string_view, std::string_view> kPreTokenizers[] = {
    {"default", "gpt-2"},      {"gpt-2", "gpt-2"},         {"gpt2", "gpt-2"},
    {"smollm", "smollm"},      {"llama-bpe", "llama-bpe"}, {"llama3", "llama-bpe"},
    {"llama-v3", "llama-bpe"}, {"qwen2", "qwen2"}};

std::string pre_tokenizer(const std::string& name) {
  for (const auto& [theirs, ours] : kPreTokenizers)
    if (theirs == name) return std::string(ours);
  throw Error(
      fmt::format("tokenizer.ggml.pre is {}, supported are 'gpt-2', 'smollm', "
                  "'llama-bpe' and 'qwen2'",
                  quote(name)));
}

/// Token texts must be distinct: the encoder looks tokens up by text.
std::vector<std::string> read_tokens(const GgufMetadata& meta) {
  std::vector<std::string> tokens = meta.strings("tokenizer.ggml.tokens");
  LAB_CHECK(!tokens.empty(), "tokenizer.ggml.tokens is empty");
  LAB_CHECK(tokens.size() <= std::size_t{1} << 28, "tokenizer.ggml.tokens has {} tokens",
            tokens.size());
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) tokens[i] = fmt::format("[EMPTY_{}]", i);
    LAB_CHECK(seen.insert(tokens[i]).second,
              "tokenizer.ggml.tokens has {} twice, again at {}", quote(tokens[i]), i);
  }
  return tokens;
}

std::vector<TokenType> read_types(const GgufMetadata& meta, std::size_t n_tokens) {
  std::vector<TokenType> types(n_tokens, TokenType::normal);
  if (!meta.has("tokenizer.ggml.token_type")) return types;
  const std::vector<std::int64_t> stored = meta.integers("tokenizer.ggml.token_type");
  LAB_CHECK(stored.size() == n_tokens,
            "tokenizer.ggml.token_type has {} entries for {} tokens, expected as many",
            stored.size(), n_tokens);
  for (std::size_t i = 0; i < n_tokens; ++i) {
    LAB_CHECK(stored[i] >= 1 && stored[i] <= 6,
              "tokenizer.ggml.token_type of token {} is {}, expected 1 to 6", i, stored[i]);
    types[i] = static_cast<TokenType>(stored[i]);
  }
  return types;
}

/// @return the id, or nothing if the key is absent. Writers store "none" as -1 or 2^32-1.
std::optional<std::int32_t> read_id(const GgufMetadata& meta, const std::string& name,
                                    std::size_t n_tokens) {
  const std::string key = "tokenizer.ggml." + name + "_token_id";
  const std::int64_t id = meta.integer(key, -1);
  if (id == -1 || id == 0xffffffff) return std::nullopt;
  LAB_CHECK(id >= 0 && id < static_cast<std::int64_t>(n_tokens),
            "{} is {}, but the tokenizer has {} tokens", key, id, n_tokens);
  return static_cast<std::int32_t>(id);
}

}  // namespace

Config config_from_gguf(const GgufMetadata& meta, const Checkpoint& checkpoint) {
  check_supported(meta);
  Config c;
  c.architecture = meta.string("general.architecture");
  c.name = meta.string("general.name", "");
  c.n_layers = meta.integer("llama.block_count");
  c.model_dim = meta.integer("llama.embedding_length");
  c.ffn_dim = meta.integer("llama.feed_forward_length");
  c.n_heads = meta.integer("llama.attention.head_count");
  c.n_kv_heads = meta.integer("llama.attention.head_count_kv", c.n_heads);
  c.head_dim = meta.has("llama.attention.key_length")
                   ? meta.integer("llama.attention.key_length")
                   : default_head_dim(c.model_dim, c.n_heads);
  c.context_length = meta.integer("llama.context_length");
  c.rms_eps = meta.f32("llama.attention.layer_norm_rms_epsilon");
  c.rope.base = meta.f32("llama.rope.freq_base", 10000.0f);
  c.rope.layout = RopeLayout::interleaved;

  const std::int64_t value_dim = meta.integer("llama.attention.value_length", c.head_dim);
  const std::int64_t rope_dim = meta.integer("llama.rope.dimension_count", c.head_dim);
  LAB_CHECK(value_dim == c.head_dim && rope_dim == c.head_dim,
            "the heads' key length is {}, value length {}, RoPE dimensions {}: only models "
            "where all three are equal are supported",
            c.head_dim, value_dim, rope_dim);
  const TensorInfo* embedding = checkpoint.find("token_embd.weight");
  LAB_CHECK(
      embedding != nullptr && embedding->shape.size() == 2,
      "the file has no matrix 'token_embd.weight'; it does not hold a language model");
  c.vocab_size = embedding->shape[0];
  validate(c);  // before head_dim decides about memory
  c.rope.divisors = read_divisors(meta, checkpoint, c.head_dim);
  validate(c);
  return c;
}

Vocab vocab_from_gguf(const GgufMetadata& meta) {
  const std::string& model = meta.string("tokenizer.ggml.model");
  LAB_CHECK(model == "gpt2",
            "tokenizer.ggml.model is {}, only 'gpt2' (byte-level BPE) is supported",
            quote(model));
  Vocab v;
  v.pre = pre_tokenizer(meta.string("tokenizer.ggml.pre", "default"));
  v.tokens = read_tokens(meta);
  v.types = read_types(meta, v.tokens.size());
  v.merges = meta.strings("tokenizer.ggml.merges");
  v.bos = read_id(meta, "bos", v.tokens.size());
  v.eos = read_id(meta, "eos", v.tokens.size());
  v.unknown = read_id(meta, "unknown", v.tokens.size());
  v.padding = read_id(meta, "padding", v.tokens.size());
  v.ignore_merges = v.pre == "llama-bpe";
  v.add_bos = meta.boolean("tokenizer.ggml.add_bos_token", v.pre == "llama-bpe");
  LAB_CHECK(!v.add_bos || v.bos.has_value(),
            "tokenizer.ggml.add_bos_token is set, but there is no bos_token_id");
  v.chat_template = meta.string("tokenizer.chat_template", "");
  std::vector<std::int32_t> more;
  for (const char* name : {"eot", "eom"})
    if (const auto id = read_id(meta, name, v.tokens.size())) more.push_back(*id);
  detail::set_end_of_generation(v, more);
  return v;
}

}  // namespace lab
