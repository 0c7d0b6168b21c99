#include "lab/model/device_batch.hpp"

#include <algorithm>
#include <vector>

namespace lab {

std::int64_t DeviceBatch::max_queries() const {
  std::int64_t most = 0;
  for (const Segment& s : host.segments()) most = std::max(most, s.count);
  return most;
}

DeviceBatch BatchUpload::upload(Device& device, const ForwardBatch& batch) {
  const std::int64_t T = batch.n_tokens(),
                     B = static_cast<std::int64_t>(batch.segments().size());
  std::vector<std::int32_t> all = batch.tokens();
  all.insert(all.end(), batch.positions().begin(), batch.positions().end());
  const auto add = [&](std::int64_t x) { all.push_back(static_cast<std::int32_t>(x)); };
  for (const Segment& s : batch.segments()) add(s.position + s.count);
  for (const Segment& s : batch.segments()) add(s.begin);
  add(T);
  for (const Segment& s : batch.segments()) add(s.sequence);
  const auto on_device = memory_.fit<1>(device, {std::int64_t(all.size())});
  device.upload(reinterpret_cast<std::byte*>(on_device.data), all.data(),
                all.size() * sizeof(std::int32_t));  // one copy: each costs a GPU 10 us
  std::int64_t used = 0;
  const auto next = [&](std::int64_t n) {
    used += n;
    return on_device.rows(used - n, used);
  };
  const auto ids = next(T), positions = next(T), kv_lens = next(B);
  const auto query_starts = next(B + 1), sequences = next(B);
  return {batch, ids, positions, kv_lens, query_starts, sequences};
}

}  // namespace lab
