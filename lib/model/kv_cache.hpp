/// @file
/// The seam behind which keys and values live: recomputed, contiguous, paged, quantised.
#pragma once

#include <cstdint>

#include "lab/core/view.hpp"
#include "lab/model/device_batch.hpp"

namespace lab {

/// Stores the keys and values of past tokens and attends to them.
///
/// The Transformer calls begin() once for a batch, then append() and attend() for each
/// layer in order. Attention is the only operation that knows sequences, so this is the
/// only class that has to know them too. All of it happens on the model's device.
class KvCache {
 public:
  KvCache() = default;
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;
  virtual ~KvCache() = default;

  /// A number that changes when the addresses or the sizes that append() and attend() hand
  /// to the device do: work that was recorded before is stale then.
  virtual std::int64_t memory_layout() const { return 0; }

  /// Makes room for the tokens of `batch`, which must outlive the forward pass.
  /// @throws Error if they do not fit or do not follow what is stored; nothing has changed
  /// then
  virtual void begin(const DeviceBatch& batch) = 0;

  /// Stores one layer's keys (already rotated) and values of the batch's tokens.
  /// @param k, v  (T, K, Dh)
  virtual void append(std::int64_t layer, DeviceView<const float, 3> k,
                      DeviceView<const float, 3> v) = 0;

  /// out[t] = causal attention of q[t] over its sequence's keys and values up to its
  /// position.
  /// @param out, q  (T, H, Dh)
  /// @param scale   factor on the scores, 1 / sqrt(Dh)
  virtual void attend(std::int64_t layer, DeviceView<float, 3> out,
                      DeviceView<const float, 3> q, float scale) = 0;
};

}  // namespace lab
