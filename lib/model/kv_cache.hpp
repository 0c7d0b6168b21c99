/// @file
/// The seam behind which keys and values live: recomputed, contiguous, paged, quantised.
#pragma once

#include <cstdint>

#include "lab/core/view.hpp"
#include "lab/model/forward_batch.hpp"

namespace lab {

/// Stores the keys and values of past tokens and attends to them.
///
/// The Transformer calls begin() once for a batch, then append() and attend() for each
/// layer in order. Attention is the only operation that knows sequences, so this is the
/// only class that has to know them too.
class KvCache {
 public:
  KvCache() = default;
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;
  virtual ~KvCache() = default;

  /// Makes room for the tokens of `batch`, which must outlive the forward pass.
  /// @throws Error if they do not fit or do not follow what is stored; nothing has changed
  /// then
  virtual void begin(const ForwardBatch& batch) = 0;

  /// Stores one layer's keys (already rotated) and values of the batch's tokens.
  /// @param k, v  (T, K, Dh)
  virtual void append(std::int64_t layer, HostView<const float, 3> k,
                      HostView<const float, 3> v) = 0;

  /// out[t] = causal attention of q[t] over its sequence's keys and values up to its
  /// position.
  /// @param out, q  (T, H, Dh)
  /// @param scale   factor on the scores, 1 / sqrt(Dh)
  virtual void attend(std::int64_t layer, HostView<float, 3> out,
                      HostView<const float, 3> q, float scale) = 0;
};

}  // namespace lab
