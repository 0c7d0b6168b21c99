/// @file
/// The decoder-only Transformer: one forward function for every technique.
#pragma once

#include <functional>
#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/core/tensor.hpp"
#include "lab/kernels/linear.hpp"
#include "lab/model/config.hpp"
#include "lab/model/forward_batch.hpp"
#include "lab/model/kv_cache.hpp"
#include "lab/model/weights.hpp"

namespace lab {

/// What one forward pass of a batch costs, counted from the shapes. Exact and independent
/// of the machine; the chapters set measured times beside it.
struct ForwardCost {
  double flops = 0;  ///< multiplications and additions of the linear layers and attention
  double weight_bytes = 0;  ///< every weight once, as packed
  double kv_bytes = 0;      ///< keys and values read by attention, as f32
};

/// A Llama-architecture model (Touvron et al. 2023, arXiv:2302.13971, section 2.2): RMSNorm
/// before each sublayer, rotary positions, grouped-query attention, SwiGLU.
class Transformer {
 public:
  /// Packs the weights. What they refer to must stay alive: the embedding is read in place.
  /// @param packed  called after each weight has been copied into its packed form
  Transformer(const Config& config, const Weights& weights,
              const std::function<void(HostWeightView)>& packed = {});

  const Config& config() const { return config_; }

  /// Runs the batch and stores its keys and values in `cache`.
  /// @return logits (N, V) of batch.logit_tokens(), valid until the next call
  /// @throws Error for a token outside the vocabulary, a position outside the context, or a
  ///         cache without room
  HostView<const float, 2> forward(const ForwardBatch& batch, KvCache& cache);

  /// Counts what forward() of `batch` costs.
  ForwardCost cost(const ForwardBatch& batch) const;

  std::size_t weight_bytes() const;  ///< packed weights, norms included

 private:
  struct Layer {
    std::vector<float> attn_norm, ffn_norm;  // (D)
    cpu::Linear q, k, v, o, gate, up, down;
  };
  struct Scratch {
    Tensor<float, 2> x, normed, out;  // (T, D)
    Tensor<float, 2> q, attended;     // (T, H * Dh)
    Tensor<float, 2> k, v;            // (T, K * Dh)
    Tensor<float, 2> gate, up;        // (T, F)
    Tensor<float, 2> cos, sin;        // (T, Dh / 2)
    Tensor<float, 2> logits;          // (N, V)
  };
  void resize_scratch(std::int64_t n_tokens, std::int64_t n_logits);
  void attention_block(std::int64_t layer, KvCache& cache);
  void mlp_block(std::int64_t layer);

  Config config_;
  HostWeightView token_embd_;       // (V, D)
  std::vector<float> output_norm_;  // (D)
  std::vector<float> inv_freq_;     // (Dh / 2)
  Arena memory_;                    // of the packed weights
  std::vector<Layer> layers_;       // (L)
  cpu::Linear output_;              // (V, D)
  Scratch s_;
};

}  // namespace lab
