/// @file
/// The Llama forward pass straight from its formulas, in double precision, on a tiny
/// model's weights in Hugging Face's order. Shares no code with the library; slow on
/// purpose.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "support/tiny_model.hpp"

namespace lab::test {

class TextbookLlama {
 public:
  explicit TextbookLlama(const TinyModel& m) : c_(m.config), tied_(m.options.tied) {
    for (const TinyTensor& t : m.tensors) weights_[t.hf_name] = t.values;
  }

  /// @return the logits (V) that follow the last of `ids`
  std::vector<double> logits(const std::vector<std::int32_t>& ids) const {
    std::vector<Vector> x;
    for (const std::int32_t id : ids) x.push_back(row("model.embed_tokens.weight", id));
    for (std::int64_t l = 0; l < c_.n_layers; ++l) {
      const std::string p = "model.layers." + std::to_string(l) + ".";
      attention(p, x);
      for (Vector& v : x) mlp(p, v);
    }
    const Vector y = norm("model.norm.weight", x.back());
    return apply(tied_ ? "model.embed_tokens.weight" : "lm_head.weight", y);
  }

 private:
  using Vector = std::vector<double>;

  Vector row(const std::string& name, std::int64_t i) const {
    const auto& w = weights_.at(name);
    return {w.begin() + i * c_.model_dim, w.begin() + (i + 1) * c_.model_dim};
  }
  Vector apply(const std::string& name, const Vector& x) const {
    const auto& w = weights_.at(name);
    Vector y(w.size() / x.size(), 0);
    for (std::size_t o = 0; o < y.size(); ++o)
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += double(w[o * x.size() + i]) * x[i];
    return y;
  }
  Vector norm(const std::string& name, const Vector& x) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double scale = 1 / std::sqrt(squares / double(x.size()) + double(c_.rms_eps));
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = weights_.at(name)[i] * x[i] * scale;
    return y;
  }
  /// Half-split pairs: (i, i + Dh/2).
  void rotate(Vector& x, std::int64_t position) const {
    const std::int64_t half = c_.head_dim / 2;
    for (std::size_t head = 0; head < x.size(); head += std::size_t(c_.head_dim))
      for (std::int64_t i = 0; i < half; ++i) {
        double frequency =
            std::pow(double(c_.rope.base), -2.0 * double(i) / double(c_.head_dim));
        if (!c_.rope.divisors.empty()) frequency /= c_.rope.divisors[std::size_t(i)];
        const double angle = double(position) * frequency;
        double& a = x[head + std::size_t(i)];
        double& b = x[head + std::size_t(i + half)];
        const double a0 = a, b0 = b;
        a = a0 * std::cos(angle) - b0 * std::sin(angle);
        b = b0 * std::cos(angle) + a0 * std::sin(angle);
      }
  }
  void attention(const std::string& p, std::vector<Vector>& x) const {
    std::vector<Vector> q, k, v;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Vector y = norm(p + "input_layernorm.weight", x[t]);
      q.push_back(apply(p + "self_attn.q_proj.weight", y));
      k.push_back(apply(p + "self_attn.k_proj.weight", y));
      v.push_back(apply(p + "self_attn.v_proj.weight", y));
      rotate(q.back(), std::int64_t(t));
      rotate(k.back(), std::int64_t(t));
    }
    const auto Dh = std::size_t(c_.head_dim),
               group = std::size_t(c_.n_heads / c_.n_kv_heads);
    for (std::size_t t = 0; t < x.size(); ++t) {
      Vector out(q[t].size(), 0);
      for (std::size_t h = 0; h < std::size_t(c_.n_heads); ++h) {
        Vector weight(t + 1, 0);
        double sum = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t d = 0; d < Dh; ++d)
            weight[s] += q[t][h * Dh + d] * k[s][h / group * Dh + d];
          sum += weight[s] = std::exp(weight[s] / std::sqrt(double(Dh)));
        }
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t d = 0; d < Dh; ++d)
            out[h * Dh + d] += weight[s] / sum * v[s][h / group * Dh + d];
      }
      const Vector o = apply(p + "self_attn.o_proj.weight", out);
      for (std::size_t i = 0; i < o.size(); ++i) x[t][i] += o[i];
    }
  }
  void mlp(const std::string& p, Vector& x) const {
    const Vector y = norm(p + "post_attention_layernorm.weight", x);
    Vector gate = apply(p + "mlp.gate_proj.weight", y);
    const Vector up = apply(p + "mlp.up_proj.weight", y);
    for (std::size_t i = 0; i < gate.size(); ++i)
      gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    const Vector down = apply(p + "mlp.down_proj.weight", gate);
    for (std::size_t i = 0; i < down.size(); ++i) x[i] += down[i];
  }

  Config c_;
  bool tied_;
  std::map<std::string, std::vector<float>> weights_;
};

}  // namespace lab::test
