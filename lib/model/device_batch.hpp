/// @file
/// A ForwardBatch where the kernels can read it.
#pragma once

#include <cstdint>

#include "lab/core/view.hpp"
#include "lab/device/device.hpp"
#include "lab/model/forward_batch.hpp"

namespace lab {

/// The batch of one forward pass, on the host and on the device.
struct DeviceBatch {
  const ForwardBatch& host;
  DeviceView<const std::int32_t, 1> ids;        ///< (T)
  DeviceView<const std::int32_t, 1> positions;  ///< (T)
  /// (number of segments): how long each segment's sequence is with this batch in it
  DeviceView<const std::int32_t, 1> kv_lens;
  /// (number of segments + 1): the first token of each segment, and T
  DeviceView<const std::int32_t, 1> query_starts;
  /// (number of segments): the sequence of each
  DeviceView<const std::int32_t, 1> sequences;

  /// Tokens of the segment with the most.
  std::int64_t max_queries() const;
};

/// Memory for the device side of one batch after the other, at the same address while the
/// batches have one shape.
class BatchUpload {
 public:
  DeviceBatch upload(Device& device, const ForwardBatch& batch);

 private:
  DeviceArray<std::int32_t> memory_;  // all arrays of a DeviceBatch, in order
};

}  // namespace lab
