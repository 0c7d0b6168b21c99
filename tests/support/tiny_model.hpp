/// @file
/// A tiny random Llama model, written as GGUF and as a Hugging Face folder from the same
/// weights. Link lab::model and nlohmann_json::nlohmann_json.
#pragma once

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/core/half.hpp"
#include "lab/core/rng.hpp"
#include "lab/model/config.hpp"
#include "lab/model/gguf_writer.hpp"
#include "support/mini_vocab.hpp"
#include "support/safetensors_writer.hpp"
#include "support/temp_folder.hpp"

namespace lab::test {

/// Sizes that are all different, n_heads/n_kv_heads != n_kv_heads, head_dim != D/H, and one
/// embedding row more than the mini vocabulary has tokens.
inline Config tiny_config() {
  Config c;
  c.architecture = "llama";
  c.name = "tiny";
  c.n_layers = 2;
  c.model_dim = 48;
  c.ffn_dim = 80;
  c.n_heads = 8;
  c.n_kv_heads = 2;
  c.head_dim = 10;
  c.vocab_size = 272;
  c.context_length = 128;
  c.rms_eps = 1e-5f;
  return c;
}

struct TinyOptions {
  std::uint64_t seed = 1;
  DType dtype = DType::f32;  ///< F32, F16 or BF16: of matrices; norms are exact in it
  bool tied = true;
  std::optional<Llama3RopeScaling> llama3 = {};  ///< replaces config.rope.divisors
  std::string chat_template = {};
};

struct TinyTensor {
  std::string hf_name, gguf_name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;    // in Hugging Face's row order
  std::int64_t rope_heads = 0;  ///< of Q and K: heads whose rows GGUF orders differently
};

struct TinyModel {
  Config config;
  TinyOptions options;
  std::vector<TinyTensor> tensors;
};

inline std::vector<std::byte> encode(std::span<const float> values, DType dtype) {
  std::vector<std::byte> out;
  const auto put = [&](const auto v) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    out.insert(out.end(), p, p + sizeof v);
  };
  for (const float v : values) {
    if (dtype == DType::f16)
      put(to_half(v).bits);
    else if (dtype == DType::bf16)
      put(to_bfloat16(v).bits);
    else
      put(v);
  }
  return out;
}

/// @return `v` as it reads back from storage in `dtype`
inline float rounded(float v, DType dtype) {
  if (dtype == DType::f16) return to_float(to_half(v));
  if (dtype == DType::bf16) return to_float(to_bfloat16(v));
  return v;
}

/// Every value comes from `options.seed`.
inline TinyModel make_tiny_model(Config config = tiny_config(), TinyOptions options = {}) {
  TinyModel m{std::move(config), std::move(options), {}};
  Config& c = m.config;
  if (m.options.llama3)
    c.rope.divisors =
        llama3_rope_divisors(*m.options.llama3, double(c.rope.base), c.head_dim);
  Rng rng(m.options.seed);
  const auto add = [&](std::string hf, std::string gguf, std::vector<std::int64_t> shape,
                       std::int64_t rope_heads = 0) {
    TinyTensor t{std::move(hf), std::move(gguf), std::move(shape), {}, rope_heads};
    std::int64_t n = 1;
    for (const std::int64_t extent : t.shape) n *= extent;
    const bool norm = t.shape.size() == 1;
    const double scale = norm ? 0.2 : 1 / std::sqrt(double(t.shape.back()));
    for (std::int64_t i = 0; i < n; ++i)
      t.values.push_back(rounded(static_cast<float>((norm ? 1 : 0) + scale * rng.normal()),
                                 m.options.dtype));
    m.tensors.push_back(std::move(t));
  };
  const std::int64_t q_dim = c.n_heads * c.head_dim, kv_dim = c.n_kv_heads * c.head_dim;
  add("model.embed_tokens.weight", "token_embd.weight", {c.vocab_size, c.model_dim});
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    const std::string hf = "model.layers." + std::to_string(i) + ".";
    const std::string gguf = "blk." + std::to_string(i) + ".";
    add(hf + "input_layernorm.weight", gguf + "attn_norm.weight", {c.model_dim});
    add(hf + "self_attn.q_proj.weight", gguf + "attn_q.weight", {q_dim, c.model_dim},
        c.n_heads);
    add(hf + "self_attn.k_proj.weight", gguf + "attn_k.weight", {kv_dim, c.model_dim},
        c.n_kv_heads);
    add(hf + "self_attn.v_proj.weight", gguf + "attn_v.weight", {kv_dim, c.model_dim});
    add(hf + "self_attn.o_proj.weight", gguf + "attn_output.weight", {c.model_dim, q_dim});
    add(hf + "post_attention_layernorm.weight", gguf + "ffn_norm.weight", {c.model_dim});
    add(hf + "mlp.gate_proj.weight", gguf + "ffn_gate.weight", {c.ffn_dim, c.model_dim});
    add(hf + "mlp.up_proj.weight", gguf + "ffn_up.weight", {c.ffn_dim, c.model_dim});
    add(hf + "mlp.down_proj.weight", gguf + "ffn_down.weight", {c.model_dim, c.ffn_dim});
  }
  add("model.norm.weight", "output_norm.weight", {c.model_dim});
  if (!m.options.tied) add("lm_head.weight", "output.weight", {c.vocab_size, c.model_dim});
  return m;
}

/// GGUF's order of the rows of Q and K: row 2i + j of a head is Hugging Face's j * Dh/2 +
/// i.
inline std::vector<float> permuted_rows(const TinyTensor& t) {
  const auto cols = static_cast<std::size_t>(t.shape[1]);
  const auto heads = static_cast<std::size_t>(t.rope_heads);
  const std::size_t head_dim = static_cast<std::size_t>(t.shape[0]) / heads;
  std::vector<float> out;
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t row = 0; row < head_dim; ++row) {
      const std::size_t from = h * head_dim + row % 2 * (head_dim / 2) + row / 2;
      const auto begin = t.values.begin() + static_cast<std::ptrdiff_t>(from * cols);
      out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(cols));
    }
  return out;
}

inline void add_vocab(GgufWriter& w, const Vocab& v) {
  std::vector<std::int32_t> types;
  for (const TokenType type : v.types) types.push_back(static_cast<std::int32_t>(type));
  w.add("tokenizer.ggml.model", "gpt2");
  w.add("tokenizer.ggml.pre", v.pre);
  w.add("tokenizer.ggml.tokens", v.tokens);
  w.add("tokenizer.ggml.token_type", types);
  w.add("tokenizer.ggml.merges", v.merges);
  w.add("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*v.bos));
  w.add("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(*v.eos));
  w.add("tokenizer.ggml.padding_token_id", static_cast<std::uint32_t>(*v.padding));
  w.add("tokenizer.ggml.add_bos_token", v.add_bos);
}

/// The model as GGUF; tests may add to it or leave something out before it is written.
inline GgufWriter tiny_gguf(const TinyModel& m) {
  const Config& c = m.config;
  const auto u32 = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
  GgufWriter w;
  w.add("general.architecture", "llama");
  w.add("general.name", c.name);
  w.add("llama.block_count", u32(c.n_layers));
  w.add("llama.context_length", u32(c.context_length));
  w.add("llama.embedding_length", u32(c.model_dim));
  w.add("llama.feed_forward_length", u32(c.ffn_dim));
  w.add("llama.attention.head_count", u32(c.n_heads));
  w.add("llama.attention.head_count_kv", u32(c.n_kv_heads));
  w.add("llama.attention.key_length", u32(c.head_dim));
  w.add("llama.attention.value_length", u32(c.head_dim));
  w.add("llama.attention.layer_norm_rms_epsilon", c.rms_eps);
  w.add("llama.rope.dimension_count", u32(c.head_dim));
  w.add("llama.rope.freq_base", c.rope.base);
  add_vocab(w, mini_vocab());
  if (!m.options.chat_template.empty())
    w.add("tokenizer.chat_template", m.options.chat_template);
  if (!c.rope.divisors.empty())
    w.add_tensor("rope_freqs.weight", DType::f32, {c.head_dim / 2},
                 std::as_bytes(std::span(c.rope.divisors)));
  for (const TinyTensor& t : m.tensors) {
    const DType dtype = t.shape.size() == 1 ? DType::f32 : m.options.dtype;
    w.add_tensor(t.gguf_name, dtype, t.shape,
                 encode(t.rope_heads ? permuted_rows(t) : t.values, dtype));
  }
  return w;
}

inline nlohmann::json tiny_hf_config(const TinyModel& m) {
  const Config& c = m.config;
  nlohmann::json j = {{"architectures", {"LlamaForCausalLM"}},
                      {"model_type", "llama"},
                      {"_name_or_path", c.name},
                      {"num_hidden_layers", c.n_layers},
                      {"hidden_size", c.model_dim},
                      {"intermediate_size", c.ffn_dim},
                      {"num_attention_heads", c.n_heads},
                      {"num_key_value_heads", c.n_kv_heads},
                      {"head_dim", c.head_dim},
                      {"vocab_size", c.vocab_size},
                      {"max_position_embeddings", c.context_length},
                      {"rms_norm_eps", double(c.rms_eps)},
                      {"rope_theta", double(c.rope.base)},
                      {"rope_scaling", nullptr},
                      {"hidden_act", "silu"},
                      {"attention_bias", false},
                      {"mlp_bias", false},
                      {"tie_word_embeddings", m.options.tied},
                      {"bos_token_id", 1},
                      {"eos_token_id", 2}};
  if (const auto& s = m.options.llama3)
    j["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", s->factor},
                         {"low_freq_factor", s->low_freq_factor},
                         {"high_freq_factor", s->high_freq_factor},
                         {"original_max_position_embeddings", s->original_context}};
  else if (!c.rope.divisors.empty())  // all alike: linear
    j["rope_scaling"] = {{"type", "linear"}, {"factor", double(c.rope.divisors[0])}};
  return j;
}

/// Writes config.json, the tokenizer's files and the weights, in 1 or more files.
inline void write_tiny_hf(const TinyModel& m, const std::filesystem::path& folder,
                          std::size_t n_shards = 1) {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", tiny_hf_config(m).dump(1));
  write_file(folder / "tokenizer.json", mini_tokenizer_json());
  nlohmann::json tokenizer_config = {{"bos_token", "<|im_start|>"},
                                     {"eos_token", "<|im_end|>"},
                                     {"pad_token", "<|im_end|>"}};
  if (!m.options.chat_template.empty())
    tokenizer_config["chat_template"] = m.options.chat_template;
  write_file(folder / "tokenizer_config.json", tokenizer_config.dump(1));

  std::vector<std::vector<StoredTensor>> shards(n_shards);
  for (std::size_t i = 0; i < m.tensors.size(); ++i) {
    const TinyTensor& t = m.tensors[i];
    shards[i * n_shards / m.tensors.size()].push_back(
        {t.hf_name, m.options.dtype, t.shape, encode(t.values, m.options.dtype)});
  }
  if (n_shards == 1) {
    write_file(folder / "model.safetensors", safetensors_bytes(shards[0]));
    return;
  }
  nlohmann::json index;
  for (std::size_t s = 0; s < n_shards; ++s) {
    const std::string name = "model-" + std::to_string(s + 1) + ".safetensors";
    write_file(folder / name, safetensors_bytes(shards[s]));
    for (const StoredTensor& t : shards[s]) index["weight_map"][t.name] = name;
  }
  write_file(folder / "model.safetensors.index.json", index.dump(1));
}

}  // namespace lab::test
