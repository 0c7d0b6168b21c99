#include "lab/decode/no_kv_cache.hpp"

#include "lab/core/error.hpp"

namespace lab {
namespace {

/// Rows of a tensor of the forward pass, as attention takes keys and values.
KvView kv_rows(DeviceView<const float, 3> x, std::int64_t begin, std::int64_t end) {
  const auto rows = x.rows(begin, end);
  return {reinterpret_cast<std::byte*>(const_cast<float*>(rows.data)), DType::f32,
          rows.shape};
}

}  // namespace

void NoKvCache::begin(const DeviceBatch& batch) {
  for (const Segment& s : batch.host.segments())
    LAB_CHECK(
        s.position == 0,
        "no KV cache: sequence {} starts at position {}; without a cache every batch must "
        "hold the whole text from position 0",
        s.sequence, s.position);
  batch_ = &batch;
}

void NoKvCache::append(std::int64_t, DeviceView<const float, 3> k,
                       DeviceView<const float, 3> v) {
  k_ = k;
  v_ = v;
}

void NoKvCache::attend(std::int64_t, DeviceView<float, 3> out, DeviceView<const float, 3> q,
                       float scale) {
  std::int64_t i = 0;
  for (const Segment& s : batch_->host.segments()) {
    const std::int64_t end = s.begin + s.count;
    device_.attention(out.rows(s.begin, end), q.rows(s.begin, end),
                      kv_rows(k_, s.begin, end), kv_rows(v_, s.begin, end), scale,
                      batch_->kv_lens.rows(i, i + 1));
    ++i;
  }
}

}  // namespace lab
