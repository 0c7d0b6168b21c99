/// @file
/// The decoder-only Transformer: one forward function for every technique.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/device/device.hpp"
#include "lab/model/config.hpp"
#include "lab/model/device_batch.hpp"
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
  /// Packs the weights. What they refer to must stay alive: a CPU reads the embedding in
  /// place.
  /// @param device  where the model runs; must outlive it
  /// @param packed  called after each weight has been copied into its packed form
  Transformer(const Config& config, const Weights& weights, Device& device = cpu_device(),
              const std::function<void(HostWeightView)>& packed = {});

  const Config& config() const { return config_; }
  Device& device() const { return device_; }

  /// Runs the batch and stores its keys and values in `cache`.
  /// @param cache  on the same device
  /// @return logits (N, V) of batch.logit_tokens(), valid until the next call
  /// @throws Error for a token outside the vocabulary, a position outside the context, or a
  ///         cache without room
  HostView<const float, 2> forward(const ForwardBatch& batch, KvCache& cache);

  /// The first half of forward(): checks the batch, makes room for it, and brings it to the
  /// device. Nothing is computed.
  void prepare(const ForwardBatch& batch, KvCache& cache);
  /// The second half: computes what prepare() was given. It is device work only, so that
  /// Device::record() can record it, and repeat it after a prepare() of the same shape.
  /// @return logits (N, V) on the device, valid until the next call
  DeviceView<const float, 2> compute(KvCache& cache);
  /// Changes when compute() works at other addresses than before: recorded work is then out
  /// of date.
  std::int64_t memory_layout() const { return memory_layout_; }

  /// Counts what forward() of `batch` costs.
  ForwardCost cost(const ForwardBatch& batch) const;

  std::size_t weight_bytes() const;  ///< packed weights, norms included

 private:
  using SharedMatrix = std::shared_ptr<const Matrix>;
  struct Layer {
    DeviceVector<float> attn_norm, ffn_norm;  // (D)
    SharedMatrix q, k, v, o, gate, up, down;
  };
  struct Arrays {
    DeviceArray<float> x, normed, out, q, attended, k, v, gate, cos, sin, logits;
  };
  struct Views {                          // of the arrays, for the current batch
    DeviceView<float, 2> x, normed, out;  // (T, D)
    DeviceView<float, 3> q, attended;     // (T, H, Dh)
    DeviceView<float, 3> k, v;            // (T, K, Dh)
    DeviceView<float, 2> gate;            // (T, F)
    DeviceView<float, 2> cos, sin;        // (T, Dh / 2)
    DeviceView<float, 2> logits;          // (N, V)
  };
  void fit_arrays(std::int64_t n_tokens, std::int64_t n_logits);
  void attention_block(const Layer& layer, std::int64_t index, KvCache& cache);
  void mlp_block(const Layer& layer);
  DeviceView<float, 2> wanted_rows();

  Config config_;
  Device& device_;
  Arena memory_;                      // of the packed weights, on a CPU
  std::vector<Layer> layers_;         // (L)
  SharedMatrix output_, token_embd_;  // (V, D)
  DeviceVector<float> output_norm_;   // (D)
  DeviceVector<float> inv_freq_;      // (Dh / 2)
  Arrays arrays_;
  Views s_;
  BatchUpload upload_;
  std::int64_t memory_layout_ = 0;
  std::optional<DeviceBatch> batch_;  // between prepare() and compute()
};

}  // namespace lab
