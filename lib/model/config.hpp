/// @file
/// The shape of a Llama-style model: everything about it except the weights' values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/kernels/rope.hpp"

namespace lab {

/// Rotary position embedding: pair i of a head turns by position * base^(-2i/Dh) /
/// divisors[i].
struct RopeConfig {
  float base = 10000;
  RopeLayout layout = RopeLayout::interleaved;
  std::vector<float> divisors;  // (Dh / 2), or empty: all 1
};

struct Config {
  std::string architecture;     ///< "llama"
  std::string name;             ///< for people; may be empty
  std::int64_t n_layers = 0;    ///< L
  std::int64_t model_dim = 0;   ///< D, the width of the residual stream
  std::int64_t ffn_dim = 0;     ///< F
  std::int64_t n_heads = 0;     ///< H, query heads
  std::int64_t n_kv_heads = 0;  ///< K, divides H
  std::int64_t head_dim = 0;    ///< Dh; not always D / H
  std::int64_t vocab_size = 0;  ///< V, rows of the embedding; may exceed the tokenizer's
  std::int64_t context_length = 0;  ///< positions that the model was trained for
  float rms_eps = 1e-5f;
  /// The output matrix is the embedding, even if the file holds another one.
  bool tie_embeddings = false;
  RopeConfig rope;
};

/// @throws Error that names the first field that no model can have
void validate(const Config& config);

/// @return (Dh / 2): base^(-2i/Dh) / divisors[i], the power taken in double and rounded
/// once
std::vector<float> rope_inverse_frequencies(const Config& config);

/// Parameters of Llama 3's stretched context ("rope_type": "llama3").
struct Llama3RopeScaling {
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_context = 8192;
};

/// Divisors that stretch long wavelengths by `factor`, leave short ones, and blend between.
/// @return (Dh / 2)
/// @throws Error unless all parameters are positive and low_freq_factor < high_freq_factor
/// @par Source  Llama 3.1 reference code, apply_scaling; as GGUF stores it in
/// rope_freqs.weight
std::vector<float> llama3_rope_divisors(const Llama3RopeScaling& scaling, double base,
                                        std::int64_t head_dim);

/// Position interpolation: every pair turns `factor` times slower.
/// @return (Dh / 2)
/// @throws Error unless factor is finite and positive
/// @par Source  Chen et al. 2023, arXiv:2306.15595
std::vector<float> linear_rope_divisors(double factor, std::int64_t head_dim);

}  // namespace lab
