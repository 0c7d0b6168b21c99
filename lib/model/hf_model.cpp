#include "lab/model/hf_model.hpp"

#include <algorithm>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/model/end_of_generation.hpp"
#include "lab/model/hf_tokenizer.hpp"
#include "lab/model/json_file.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

using detail::quote;
using nlohmann::json;

/// @return the value of `key`, or null if it is absent or null
const json* find(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string shown(const json& value) { return quote(value.dump(-1, ' ', true)); }

std::int64_t to_integer(const char* key, const json& value) {
  LAB_CHECK(value.is_number_integer() &&
                (!value.is_number_unsigned() ||
                 value.get<std::uint64_t>() <=
                     std::uint64_t(std::numeric_limits<std::int64_t>::max())),
            "config.json: '{}' is {}, expected a whole number", key, shown(value));
  return value.get<std::int64_t>();
}

std::int64_t integer(const json& object, const char* key) {
  const json* value = find(object, key);
  LAB_CHECK(value != nullptr, "config.json: '{}' is missing", key);
  return to_integer(key, *value);
}

std::int64_t integer(const json& object, const char* key, std::int64_t absent) {
  return find(object, key) != nullptr ? integer(object, key) : absent;
}

double number(const json& object, const char* key) {
  const json* value = find(object, key);
  LAB_CHECK(value != nullptr, "config.json: '{}' is missing", key);
  LAB_CHECK(value->is_number(), "config.json: '{}' is {}, expected a number", key,
            shown(*value));
  return value->get<double>();
}

double number(const json& object, const char* key, double absent) {
  return find(object, key) != nullptr ? number(object, key) : absent;
}

bool boolean(const json& object, const char* key) {
  const json* value = find(object, key);
  LAB_CHECK(value == nullptr || value->is_boolean(),
            "config.json: '{}' is {}, expected true or false", key, shown(*value));
  return value != nullptr && value->get<bool>();
}

std::string text(const json& object, const char* key) {
  const json* value = find(object, key);
  LAB_CHECK(value == nullptr || value->is_string(),
            "config.json: '{}' is {}, expected a text", key, shown(*value));
  return value != nullptr ? value->get<std::string>() : "";
}

void check_supported(const json& config) {
  const json* list = find(config, "architectures");
  const std::string type = text(config, "model_type");
  const json llama = json::array({"LlamaForCausalLM"});
  LAB_CHECK(
      (type == "llama" || (type.empty() && list != nullptr)) &&
          (list == nullptr || *list == llama),
      "config.json: the model has model_type {} and architectures {}, only 'llama' and "
      "LlamaForCausalLM are supported",
      quote(type), list != nullptr ? shown(*list) : "none");
  for (const char* key : {"attention_bias", "mlp_bias"})
    LAB_CHECK(!boolean(config, key),
              "config.json: '{}' is true, but only models without biases are supported",
              key);
  const std::string activation = text(config, "hidden_act");
  LAB_CHECK(activation.empty() || activation == "silu",
            "config.json: the activation is {}, only 'silu' is supported",
            quote(activation));
  LAB_CHECK(number(config, "partial_rotary_factor", 1) == 1,
            "config.json: 'partial_rotary_factor' is {}, only 1 is supported",
            number(config, "partial_rotary_factor"));
  LAB_CHECK(find(config, "quantization_config") == nullptr,
            "config.json: the model is quantized by another program; use its F16 or BF16 "
            "version, or a GGUF file");
}

/// @param scaling  "rope_scaling", or the newer "rope_parameters"
std::vector<float> read_divisors(const json& scaling, double base, std::int64_t head_dim) {
  std::string type = text(scaling, "rope_type");
  if (type.empty()) type = text(scaling, "type");
  if (type.empty() || type == "default") return {};
  if (type == "linear") return linear_rope_divisors(number(scaling, "factor"), head_dim);
  LAB_CHECK(type == "llama3",
            "config.json: the RoPE scaling is {}, supported are 'linear' and 'llama3'",
            quote(type));
  const Llama3RopeScaling s{number(scaling, "factor"), number(scaling, "low_freq_factor"),
                            number(scaling, "high_freq_factor"),
                            integer(scaling, "original_max_position_embeddings")};
  return llama3_rope_divisors(s, base, head_dim);
}

/// Adds the ids of a number or a list of numbers under `key`.
std::vector<std::int32_t> read_ids(const json& object, const char* key,
                                   std::size_t n_tokens) {
  std::vector<std::int32_t> ids;
  const json* value = find(object, key);
  if (value == nullptr) return ids;
  const json list = value->is_array() ? *value : json::array({*value});
  for (const json& item : list) {
    const std::int64_t id = to_integer(key, item);
    LAB_CHECK(id >= 0 && id < static_cast<std::int64_t>(n_tokens),
              "'{}' is {}, but the tokenizer has {} tokens", key, id, n_tokens);
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

/// The token that `key` names, as a text or as {"content": text}.
void read_token(std::optional<std::int32_t>& id, const Vocab& vocab, const json& object,
                const char* key) {
  const json* value = find(object, key);
  if (value != nullptr && value->is_object()) value = find(*value, "content");
  if (value == nullptr) return;
  LAB_CHECK(value->is_string(), "tokenizer_config.json: '{}' is {}, expected a text", key,
            shown(*value));
  const auto it = std::ranges::find(vocab.tokens, value->get_ref<const std::string&>());
  LAB_CHECK(it != vocab.tokens.end(),
            "tokenizer_config.json: '{}' is {}, which is not a token of tokenizer.json",
            key, shown(*value));
  id = static_cast<std::int32_t>(it - vocab.tokens.begin());
}

/// @return the template: a text, or of a list of named ones "default"
std::string chat_template(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  LAB_CHECK(value.is_array(),
            "tokenizer_config.json: 'chat_template' is neither a text nor a list");
  for (const json& item : value)
    if (item.is_object() && item.value("name", json()) == "default" &&
        item.value("template", json()).is_string())
      return item["template"].get<std::string>();
  return "";
}

void read_tokenizer_config(Vocab& vocab, const json& config) {
  read_token(vocab.bos, vocab, config, "bos_token");
  read_token(vocab.eos, vocab, config, "eos_token");
  read_token(vocab.unknown, vocab, config, "unk_token");
  read_token(vocab.padding, vocab, config, "pad_token");
  if (const json* add_bos = find(config, "add_bos_token")) {
    LAB_CHECK(add_bos->is_boolean(),
              "tokenizer_config.json: 'add_bos_token' is {}, expected true or false",
              shown(*add_bos));
    vocab.add_bos = add_bos->get<bool>();
  }
  if (const json* value = find(config, "chat_template"))
    vocab.chat_template = chat_template(*value);
}

}  // namespace

Config config_from_hf(std::string_view config_json, const Checkpoint& checkpoint) {
  const json config = detail::parse_json_object(config_json, "config.json");
  check_supported(config);
  Config c;
  c.architecture = "llama";
  c.name = text(config, "_name_or_path");
  c.n_layers = integer(config, "num_hidden_layers");
  c.model_dim = integer(config, "hidden_size");
  c.ffn_dim = integer(config, "intermediate_size");
  c.n_heads = integer(config, "num_attention_heads");
  c.n_kv_heads = integer(config, "num_key_value_heads", c.n_heads);
  LAB_CHECK(find(config, "head_dim") != nullptr ||
                (c.n_heads > 0 && c.model_dim % c.n_heads == 0),
            "config.json: without 'head_dim', hidden_size={} must be a multiple of "
            "num_attention_heads={}",
            c.model_dim, c.n_heads);
  c.head_dim = find(config, "head_dim") != nullptr ? integer(config, "head_dim")
                                                   : c.model_dim / c.n_heads;
  c.context_length = integer(config, "max_position_embeddings");
  c.rms_eps = static_cast<float>(number(config, "rms_norm_eps"));
  c.tie_embeddings = boolean(config, "tie_word_embeddings");
  c.rope.layout = RopeLayout::half_split;

  const json* scaling = find(config, "rope_parameters");
  if (scaling == nullptr) scaling = find(config, "rope_scaling");
  LAB_CHECK(scaling == nullptr || scaling->is_object(),
            "config.json: the RoPE parameters are {}, expected an object", shown(*scaling));
  double base = number(config, "rope_theta", 10000);
  if (scaling != nullptr) base = number(*scaling, "rope_theta", base);
  c.rope.base = static_cast<float>(base);

  const TensorInfo* embedding = checkpoint.find("model.embed_tokens.weight");
  LAB_CHECK(
      embedding != nullptr && embedding->shape.size() == 2,
      "the files have no matrix 'model.embed_tokens.weight'; they do not hold a complete "
      "language model");
  c.vocab_size = embedding->shape[0];
  validate(c);  // before head_dim decides about memory
  if (scaling != nullptr) c.rope.divisors = read_divisors(*scaling, base, c.head_dim);
  validate(c);
  return c;
}

Vocab vocab_from_hf(const std::filesystem::path& folder) {
  Vocab v = load_hf_vocab(folder / "tokenizer.json");
  std::vector<std::int32_t> endings;
  // Each file knows better than the one before it what the tokenizer really uses.
  for (const char* name : {"config.json", "generation_config.json"}) {
    if (!std::filesystem::exists(folder / name)) continue;
    const json object = detail::read_json_file(folder / name);
    const auto bos = read_ids(object, "bos_token_id", v.tokens.size());
    const auto eos = read_ids(object, "eos_token_id", v.tokens.size());
    if (!bos.empty()) v.bos = bos.front();
    if (!eos.empty()) v.eos = eos.front();
    endings.insert(endings.end(), eos.begin(), eos.end());
  }
  if (const auto path = folder / "tokenizer_config.json"; std::filesystem::exists(path))
    read_tokenizer_config(v, detail::read_json_file(path));
  if (const auto path = folder / "chat_template.jinja"; std::filesystem::exists(path))
    v.chat_template = detail::read_text_file(path);
  LAB_CHECK(!v.add_bos || v.bos.has_value(),
            "tokenizer_config.json asks for a bos token before the text, but names none");
  detail::set_end_of_generation(v, endings);
  return v;
}

}  // namespace lab
