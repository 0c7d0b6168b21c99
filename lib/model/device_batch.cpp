#include "lab/model/device_batch.hpp"

#include <vector>

namespace lab {

DeviceBatch BatchUpload::upload(Device& device, const ForwardBatch& batch) {
  const std::int64_t T = batch.n_tokens(),
                     n_segments = static_cast<std::int64_t>(batch.segments().size());
  std::vector<std::int32_t> all = batch.tokens();
  all.insert(all.end(), batch.positions().begin(), batch.positions().end());
  for (const Segment& s : batch.segments())
    all.push_back(static_cast<std::int32_t>(s.position + s.count));
  const auto on_device = memory_.fit<1>(device, {2 * T + n_segments});
  device.upload(reinterpret_cast<std::byte*>(on_device.data), all.data(),
                all.size() * sizeof(std::int32_t));  // one copy: each costs a GPU 10 us
  return {batch, on_device.rows(0, T), on_device.rows(T, 2 * T),
          on_device.rows(2 * T, 2 * T + n_segments)};
}

}  // namespace lab
