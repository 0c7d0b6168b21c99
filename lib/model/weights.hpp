/// @file
/// The weights of a Llama-style model, checked for shape and ready for kernels.
#pragma once

#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/core/view.hpp"
#include "lab/model/checkpoint.hpp"
#include "lab/model/config.hpp"

namespace lab {

/// How the tensors of a file are called.
enum class WeightNames { gguf, hf };

/// One Transformer block. Matrices are (out, in).
struct LayerWeights {
  std::vector<float> attn_norm;  // (D)
  std::vector<float> ffn_norm;   // (D)
  HostWeightView q;              // (H * Dh, D)
  HostWeightView k;              // (K * Dh, D)
  HostWeightView v;              // (K * Dh, D)
  HostWeightView o;              // (D, H * Dh)
  HostWeightView gate;           // (F, D)
  HostWeightView up;             // (F, D)
  HostWeightView down;           // (D, F)
};

/// A model's weights. Matrices stay where the checkpoint has them, which must outlive this;
/// those that are not aligned to their elements are copied.
struct Weights {
  HostWeightView token_embd;       // (V, D)
  HostWeightView output;           // (V, D); token_embd if tied
  bool tied = false;               ///< output is token_embd
  std::vector<float> output_norm;  // (D)
  std::vector<LayerWeights> layers;
  std::vector<Buffer> copies;  ///< what was not aligned in the file
};

/// Finds every weight of the model that `config` describes. The output matrix is the
/// embedding if the checkpoint has no other one, or if config.tie_embeddings says so.
/// @throws Error if a tensor is missing, has another shape or type, or is one that this
/// model
///   would silently ignore, such as a bias
Weights bind_weights(const Checkpoint& checkpoint, const Config& config, WeightNames names);

}  // namespace lab
