/// @file
/// No KV cache: every forward pass computes the keys and values of the whole text again.
#pragma once

#include "lab/model/kv_cache.hpp"

namespace lab {

/// Keeps one layer's keys and values for the length of one attend(), and nothing after
/// that. Every batch must therefore hold its sequences from position 0 on.
class NoKvCache final : public KvCache {
 public:
  /// @param device  the model's
  explicit NoKvCache(Device& device = cpu_device()) : device_(device) {}

  void begin(const DeviceBatch& batch) override;
  void append(std::int64_t layer, DeviceView<const float, 3> k,
              DeviceView<const float, 3> v) override;
  void attend(std::int64_t layer, DeviceView<float, 3> out, DeviceView<const float, 3> q,
              float scale) override;

 private:
  Device& device_;
  const DeviceBatch* batch_ = nullptr;
  DeviceView<const float, 3> k_, v_;  // (T, K, Dh), the Transformer's own scratch
};

}  // namespace lab
