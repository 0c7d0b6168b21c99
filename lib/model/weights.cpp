#include "lab/model/weights.hpp"

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>

#include "lab/core/error.hpp"
#include "lab/kernels/dequantize.hpp"
#include "lab/model/parse_support.hpp"

namespace lab {
namespace {

/// How a file format calls the weights; those of a layer follow "<layer><index>.".
struct NameTable {
  std::string_view token_embd, output, output_norm, layer;
  std::string_view attn_norm, ffn_norm, q, k, v, o, gate, up, down;
  std::string_view ignored_suffix;  ///< tensors that hold nothing but RoPE's constants
};

constexpr NameTable kGgufNames = {
    "token_embd.weight", "output.weight",      "output_norm.weight", "blk.",
    "attn_norm.weight",  "ffn_norm.weight",    "attn_q.weight",      "attn_k.weight",
    "attn_v.weight",     "attn_output.weight", "ffn_gate.weight",    "ffn_up.weight",
    "ffn_down.weight",   "rope_freqs.weight"};
constexpr NameTable kHfNames = {
    "model.embed_tokens.weight", "lm_head.weight",
    "model.norm.weight",         "model.layers.",
    "input_layernorm.weight",    "post_attention_layernorm.weight",
    "self_attn.q_proj.weight",   "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",   "self_attn.o_proj.weight",
    "mlp.gate_proj.weight",      "mlp.up_proj.weight",
    "mlp.down_proj.weight",      "rotary_emb.inv_freq"};

/// Takes tensors from a checkpoint and remembers which.
class Binder {
 public:
  Binder(const Checkpoint& checkpoint, std::vector<Buffer>& copies)
      : checkpoint_(checkpoint), copies_(copies) {}

  HostWeightView matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
    const std::array shape = {rows, cols};
    const TensorInfo& tensor = checkpoint_.bind(name, {}, shape);
    used_.insert(name);
    const HostWeightView view{tensor.data.data(), *tensor.dtype, rows, cols};
    LAB_CHECK(
        cols % dtype_info(view.dtype).block_size == 0 &&
            tensor.data.size() == static_cast<std::size_t>(view.bytes()),
        "tensor '{}' has {} bytes, which are not {} rows of {} elements in whole {} blocks",
        name, tensor.data.size(), rows, cols, tensor.type_name);
    return aligned(view);
  }

  std::vector<float> vector(const std::string& name, std::int64_t n) {
    constexpr std::array kAllowed = {DType::f32, DType::f16, DType::bf16};
    const std::array shape = {n};
    const TensorInfo& tensor = checkpoint_.bind(name, kAllowed, shape);
    used_.insert(name);
    std::vector<float> out(static_cast<std::size_t>(n));                   // (n)
    std::vector<std::byte> bytes(tensor.data.begin(), tensor.data.end());  // aligned
    cpu::dequantize({out.data(), {n}}, *tensor.dtype, bytes.data());
    return out;
  }

  void ignore(std::string_view name) { used_.insert(std::string(name)); }

  /// @throws Error if the checkpoint has a tensor that was not asked for
  void check_all_used(std::string_view ignored_suffix) const {
    for (const TensorInfo& t : checkpoint_.tensors())
      LAB_CHECK(
          used_.contains(t.name) || t.name.ends_with(ignored_suffix),
          "tensor {} is not part of a Llama model of this configuration (biases and other "
          "extra weights are not supported), and ignoring it would give wrong results",
          detail::quote(t.name));
  }

 private:
  /// Kernels load whole elements: 4 bytes of an F32, 2 of everything else.
  HostWeightView aligned(HostWeightView view) {
    const std::uintptr_t alignment = view.dtype == DType::f32 ? 4 : 2;
    if (reinterpret_cast<std::uintptr_t>(view.data) % alignment == 0) return view;
    Buffer& copy = copies_.emplace_back(static_cast<std::size_t>(view.bytes()));
    std::memcpy(copy.data(), view.data, copy.size());
    view.data = copy.data();
    return view;
  }

  const Checkpoint& checkpoint_;
  std::vector<Buffer>& copies_;
  std::unordered_set<std::string> used_;
};

LayerWeights bind_layer(Binder& binder, const NameTable& names, const Config& c,
                        std::int64_t layer) {
  const std::string prefix = fmt::format("{}{}.", names.layer, layer);
  const auto full = [&](std::string_view name) { return prefix + std::string(name); };
  const std::int64_t q_dim = c.n_heads * c.head_dim, kv_dim = c.n_kv_heads * c.head_dim;
  LayerWeights w;
  w.attn_norm = binder.vector(full(names.attn_norm), c.model_dim);   // (D)
  w.q = binder.matrix(full(names.q), q_dim, c.model_dim);            // (H * Dh, D)
  w.k = binder.matrix(full(names.k), kv_dim, c.model_dim);           // (K * Dh, D)
  w.v = binder.matrix(full(names.v), kv_dim, c.model_dim);           // (K * Dh, D)
  w.o = binder.matrix(full(names.o), c.model_dim, q_dim);            // (D, H * Dh)
  w.ffn_norm = binder.vector(full(names.ffn_norm), c.model_dim);     // (D)
  w.gate = binder.matrix(full(names.gate), c.ffn_dim, c.model_dim);  // (F, D)
  w.up = binder.matrix(full(names.up), c.ffn_dim, c.model_dim);      // (F, D)
  w.down = binder.matrix(full(names.down), c.model_dim, c.ffn_dim);  // (D, F)
  return w;
}

}  // namespace

Weights bind_weights(const Checkpoint& checkpoint, const Config& config,
                     WeightNames which) {
  validate(config);
  const NameTable& names = which == WeightNames::gguf ? kGgufNames : kHfNames;
  Weights w;
  Binder binder(checkpoint, w.copies);
  w.token_embd = binder.matrix(std::string(names.token_embd), config.vocab_size,
                               config.model_dim);  // (V, D)
  w.output_norm = binder.vector(std::string(names.output_norm), config.model_dim);  // (D)
  w.tied = config.tie_embeddings || checkpoint.find(names.output) == nullptr;
  if (w.tied) {
    binder.ignore(names.output);
    w.output = w.token_embd;
  } else {
    w.output = binder.matrix(std::string(names.output), config.vocab_size,
                             config.model_dim);  // (V, D)
  }
  for (std::int64_t i = 0; i < config.n_layers; ++i)
    w.layers.push_back(bind_layer(binder, names, config, i));
  binder.check_all_used(names.ignored_suffix);
  return w;
}

}  // namespace lab
