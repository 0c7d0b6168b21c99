#include "lab/model/transformer.hpp"

#include <algorithm>
#include <cmath>

#include "lab/core/error.hpp"
#include "lab/kernels/add.hpp"
#include "lab/kernels/embedding.hpp"
#include "lab/kernels/rms_norm.hpp"
#include "lab/kernels/rope.hpp"
#include "lab/kernels/silu_mul.hpp"

namespace lab {
namespace {

template <class T>
HostView<const T, 1> view_of(const std::vector<T>& v) {
  return {v.data(), {static_cast<std::int64_t>(v.size())}};
}

void check_batch(const ForwardBatch& batch, const Config& c) {
  LAB_CHECK(batch.n_tokens() > 0, "forward: the batch is empty; add at least one token");
  for (const std::int32_t id : batch.tokens())
    LAB_CHECK(id >= 0 && id < c.vocab_size,
              "forward: token id {} is outside the vocabulary of {}; give ids from 0 to {}",
              id, c.vocab_size, c.vocab_size - 1);
  for (const Segment& s : batch.segments())
    LAB_CHECK(s.position + s.count <= c.context_length,
              "forward: sequence {} reaches position {} but the model's context holds {} "
              "tokens; shorten the prompt or generate fewer tokens",
              s.sequence, s.position + s.count, c.context_length);
}

}  // namespace

Transformer::Transformer(const Config& config, const Weights& weights,
                         const std::function<void(HostWeightView)>& packed)
    : config_(config),
      token_embd_(weights.token_embd),
      output_norm_(weights.output_norm),
      inv_freq_(rope_inverse_frequencies(config)) {
  const auto pack = [&](HostWeightView w) {
    cpu::Linear linear(w, &memory_);
    if (packed) packed(w);
    return linear;
  };
  for (const LayerWeights& w : weights.layers)
    layers_.push_back({w.attn_norm, w.ffn_norm, pack(w.q), pack(w.k), pack(w.v), pack(w.o),
                       pack(w.gate), pack(w.up), pack(w.down)});
  output_ = pack(weights.output);
}

void Transformer::resize_scratch(std::int64_t n_tokens, std::int64_t n_logits) {
  const Config& c = config_;
  const auto fit = [](Tensor<float, 2>& t, std::int64_t rows, std::int64_t cols) {
    const std::array<std::size_t, 2> shape{std::size_t(rows), std::size_t(cols)};
    if (t.shape() != shape) t.resize(shape);
  };
  for (auto* t : {&s_.x, &s_.normed, &s_.out}) fit(*t, n_tokens, c.model_dim);
  for (auto* t : {&s_.q, &s_.attended}) fit(*t, n_tokens, c.n_heads * c.head_dim);
  for (auto* t : {&s_.k, &s_.v}) fit(*t, n_tokens, c.n_kv_heads * c.head_dim);
  for (auto* t : {&s_.gate, &s_.up}) fit(*t, n_tokens, c.ffn_dim);
  for (auto* t : {&s_.cos, &s_.sin}) fit(*t, n_tokens, c.head_dim / 2);
  fit(s_.logits, n_logits, c.vocab_size);
}

// [region attention_block]
void Transformer::attention_block(std::int64_t l, KvCache& cache) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  const std::int64_t T = s_.x.shape(0), H = config_.n_heads, K = config_.n_kv_heads,
                     Dh = config_.head_dim;
  cpu::rms_norm(view(s_.normed), view(s_.x), view_of(layer.attn_norm), config_.rms_eps);
  layer.q(view(s_.q), view(s_.normed));
  layer.k(view(s_.k), view(s_.normed));
  layer.v(view(s_.v), view(s_.normed));
  const auto q = view(s_.q).reshape<3>({T, H, Dh});
  const auto k = view(s_.k).reshape<3>({T, K, Dh});
  const auto v = view(s_.v).reshape<3>({T, K, Dh});
  cpu::rope(q, view(s_.cos), view(s_.sin), config_.rope.layout);
  cpu::rope(k, view(s_.cos), view(s_.sin), config_.rope.layout);
  cache.append(l, k, v);
  cache.attend(l, view(s_.attended).reshape<3>({T, H, Dh}), q,
               1.0f / std::sqrt(static_cast<float>(Dh)));
  layer.o(view(s_.out), view(s_.attended));
  cpu::add(view(s_.x), view(s_.x), view(s_.out));
}
// [endregion]

// [region mlp_block]
void Transformer::mlp_block(std::int64_t l) {
  const Layer& layer = layers_[static_cast<std::size_t>(l)];
  cpu::rms_norm(view(s_.normed), view(s_.x), view_of(layer.ffn_norm), config_.rms_eps);
  layer.gate(view(s_.gate), view(s_.normed));
  layer.up(view(s_.up), view(s_.normed));
  cpu::silu_mul(view(s_.gate), view(s_.gate), view(s_.up));
  layer.down(view(s_.out), view(s_.gate));
  cpu::add(view(s_.x), view(s_.x), view(s_.out));
}
// [endregion]

// [region forward]
HostView<const float, 2> Transformer::forward(const ForwardBatch& batch, KvCache& cache) {
  check_batch(batch, config_);
  const auto& wanted = batch.logit_tokens();
  const auto n_logits = static_cast<std::int64_t>(wanted.size());
  cache.begin(batch);
  resize_scratch(batch.n_tokens(), n_logits);

  cpu::embedding(view(s_.x), view_of(batch.tokens()), token_embd_);
  cpu::rope_angles(view(s_.cos), view(s_.sin), view_of(batch.positions()),
                   view_of(inv_freq_));
  for (std::int64_t l = 0; l < config_.n_layers; ++l) {
    attention_block(l, cache);
    mlp_block(l);
  }
  // Logits cost V * D a token: only the tokens asked for are normalised and projected. They
  // move to the front of x, whose other rows are not needed any more.
  for (std::int64_t i = 0; i < n_logits; ++i)
    std::copy_n(&s_.x(std::size_t(wanted[std::size_t(i)]), 0), config_.model_dim,
                &s_.x(std::size_t(i), 0));
  const auto last = view(s_.x).rows(0, n_logits);
  cpu::rms_norm(last, last, view_of(output_norm_), config_.rms_eps);
  output_(view(s_.logits), last);
  return view(std::as_const(s_.logits));
}
// [endregion]

ForwardCost Transformer::cost(const ForwardBatch& batch) const {
  const Config& c = config_;
  const double layer_weights =
      double(c.model_dim) * c.head_dim * (2.0 * c.n_heads + 2.0 * c.n_kv_heads) +
      3.0 * c.model_dim * c.ffn_dim;
  ForwardCost cost;
  cost.flops = 2.0 * c.n_layers * layer_weights * batch.n_tokens() +
               2.0 * c.model_dim * c.vocab_size * double(batch.logit_tokens().size());
  for (const Segment& s : batch.segments()) {
    // Token i of the segment meets position + i + 1 keys, and as many values.
    const double pairs =
        double(s.count) * s.position + 0.5 * double(s.count) * (s.count + 1);
    cost.flops += 4.0 * c.n_layers * c.n_heads * c.head_dim * pairs;
    cost.kv_bytes += 2.0 * c.n_layers * c.n_kv_heads * c.head_dim * sizeof(float) *
                     double(s.position + s.count);
  }
  cost.weight_bytes = static_cast<double>(weight_bytes());
  return cost;
}

std::size_t Transformer::weight_bytes() const {
  std::size_t total = output_.bytes() + output_norm_.size() * sizeof(float);
  for (const Layer& l : layers_) {
    total += (l.attn_norm.size() + l.ffn_norm.size()) * sizeof(float);
    for (const cpu::Linear* w : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down})
      total += w->bytes();
  }
  return total;
}

}  // namespace lab
