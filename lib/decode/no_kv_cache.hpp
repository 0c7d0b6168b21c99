/// @file
/// No KV cache: every forward pass computes the keys and values of the whole text again.
#pragma once

#include "lab/model/kv_cache.hpp"

namespace lab {

/// Keeps one layer's keys and values for the length of one attend(), and nothing after
/// that. Every batch must therefore hold its sequences from position 0 on.
class NoKvCache final : public KvCache {
 public:
  void begin(const ForwardBatch& batch) override;
  void append(std::int64_t layer, HostView<const float, 3> k,
              HostView<const float, 3> v) override;
  void attend(std::int64_t layer, HostView<float, 3> out, HostView<const float, 3> q,
              float scale) override;

 private:
  const ForwardBatch* batch_ = nullptr;
  HostView<const float, 3> k_, v_;  // (T, K, Dh), the Transformer's own scratch
};

}  // namespace lab
