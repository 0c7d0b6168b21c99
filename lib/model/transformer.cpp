#include "lab/model/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "lab/core/error.hpp"

namespace lab {
namespace {

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

/// The rows of heads that a linear layer writes and reads: (T, H, Dh) as (T, H * Dh).
template <class T>
DeviceView<T, 2> flat(DeviceView<T, 3> x) {
  return x.template reshape<2>({x.shape[0], x.shape[1] * x.shape[2]});
}

}  // namespace

Transformer::Transformer(const Config& config, const Weights& weights, Device& device,
                         const std::function<void(HostWeightView)>& packed)
    : config_(config),
      device_(device),
      output_norm_(device, weights.output_norm),
      inv_freq_(device, rope_inverse_frequencies(config)) {
  const auto pack = [&](HostWeightView w) {
    SharedMatrix matrix = device.matrix(w, memory_);
    if (packed) packed(w);
    return matrix;
  };
  for (const LayerWeights& w : weights.layers)
    layers_.push_back({{device, w.attn_norm},
                       {device, w.ffn_norm},
                       pack(w.q),
                       pack(w.k),
                       pack(w.v),
                       pack(w.o),
                       pack(w.gate),
                       pack(w.up),
                       pack(w.down)});
  output_ = pack(weights.output);
  token_embd_ = device.table(weights.token_embd, weights.tied ? output_ : nullptr);
}

void Transformer::fit_arrays(std::int64_t T, std::int64_t n_logits) {
  const Config& c = config_;
  for (auto [view, array] : {std::pair(&s_.x, &arrays_.x),
                             {&s_.normed, &arrays_.normed},
                             {&s_.out, &arrays_.out}})
    *view = array->fit<2>(device_, {T, c.model_dim});
  for (auto [view, array] :
       {std::pair(&s_.q, &arrays_.q), {&s_.attended, &arrays_.attended}})
    *view = array->fit<3>(device_, {T, c.n_heads, c.head_dim});
  for (auto [view, array] : {std::pair(&s_.k, &arrays_.k), {&s_.v, &arrays_.v}})
    *view = array->fit<3>(device_, {T, c.n_kv_heads, c.head_dim});
  s_.gate = arrays_.gate.fit<2>(device_, {T, c.ffn_dim});
  s_.cos = arrays_.cos.fit<2>(device_, {T, c.head_dim / 2});
  s_.sin = arrays_.sin.fit<2>(device_, {T, c.head_dim / 2});
  s_.logits = arrays_.logits.fit<2>(device_, {n_logits, c.vocab_size});
}

// [region attention_block]
void Transformer::attention_block(const Layer& w, std::int64_t index, KvCache& cache) {
  device_.rms_norm(s_.normed, s_.x, w.attn_norm.view(), config_.rms_eps);
  device_.linear({{*w.q, flat(s_.q)}, {*w.k, flat(s_.k)}, {*w.v, flat(s_.v)}}, s_.normed);
  device_.rope(s_.q, s_.cos, s_.sin, config_.rope.layout);
  device_.rope(s_.k, s_.cos, s_.sin, config_.rope.layout);
  cache.append(index, s_.k, s_.v);
  cache.attend(index, s_.attended, s_.q,
               1.0f / std::sqrt(static_cast<float>(config_.head_dim)));
  device_.linear({{*w.o, s_.out}}, flat(s_.attended));
  device_.add(s_.x, s_.x, s_.out);
}
// [endregion]

// [region mlp_block]
void Transformer::mlp_block(const Layer& w) {
  device_.rms_norm(s_.normed, s_.x, w.ffn_norm.view(), config_.rms_eps);
  device_.swiglu(s_.gate, *w.gate, *w.up, s_.normed);
  device_.linear({{*w.down, s_.out}}, s_.gate);
  device_.add(s_.x, s_.x, s_.out);
}
// [endregion]

void Transformer::prepare(const ForwardBatch& batch, KvCache& cache) {
  check_batch(batch, config_);
  const auto addresses = [this] {
    return std::tuple(s_.x.data, s_.normed.data, s_.out.data, s_.q.data, s_.attended.data,
                      s_.k.data, s_.v.data, s_.gate.data, s_.cos.data, s_.sin.data,
                      s_.logits.data, batch_ ? batch_->ids.data : nullptr);
  };
  const auto before = addresses();
  fit_arrays(batch.n_tokens(), static_cast<std::int64_t>(batch.logit_tokens().size()));
  batch_.emplace(upload_.upload(device_, batch));
  if (addresses() != before) ++memory_layout_;
  cache.begin(*batch_);
}

/// Logits cost V * D a token: only the tokens asked for are normalised and projected. They
/// move to the front of x, whose other rows are not needed any more.
DeviceView<float, 2> Transformer::wanted_rows() {
  const auto& wanted = batch_->host.logit_tokens();
  std::int64_t i = 0;
  for (const std::int64_t t : wanted) {
    const auto row = s_.x.rows(t, t + 1);
    if (t != i)
      device_.copy(reinterpret_cast<std::byte*>(s_.x.rows(i, i + 1).data),
                   reinterpret_cast<const std::byte*>(row.data),
                   std::size_t(row.size()) * sizeof(float));
    ++i;
  }
  return s_.x.rows(0, i);
}

// [region forward]
DeviceView<const float, 2> Transformer::compute(KvCache& cache) {
  device_.embedding(s_.x, batch_->ids, *token_embd_);
  device_.rope_angles(s_.cos, s_.sin, batch_->positions, inv_freq_.view());
  std::int64_t index = 0;
  for (const Layer& layer : layers_) {
    attention_block(layer, index++, cache);
    mlp_block(layer);
  }
  const DeviceView<float, 2> last = wanted_rows();
  device_.rms_norm(last, last, output_norm_.view(), config_.rms_eps);
  device_.linear({{*output_, s_.logits}}, last);
  return s_.logits;
}

HostView<const float, 2> Transformer::forward(const ForwardBatch& batch, KvCache& cache) {
  prepare(batch, cache);
  return download(device_, compute(cache));
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
  std::int64_t norms = config_.model_dim * (2 * config_.n_layers + 1);
  std::size_t total = output_->bytes() + std::size_t(norms) * sizeof(float);
  for (const Layer& l : layers_)
    for (const Matrix* w : {l.q.get(), l.k.get(), l.v.get(), l.o.get(), l.gate.get(),
                            l.up.get(), l.down.get()})
      total += w->bytes();
  return total;
}

}  // namespace lab
