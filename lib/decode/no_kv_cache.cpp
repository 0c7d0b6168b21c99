#include "lab/decode/no_kv_cache.hpp"

#include "lab/core/error.hpp"
#include "lab/kernels/attention.hpp"

namespace lab {

void NoKvCache::begin(const ForwardBatch& batch) {
  for (const Segment& s : batch.segments())
    LAB_CHECK(
        s.position == 0,
        "no KV cache: sequence {} starts at position {}; without a cache every batch must "
        "hold the whole text from position 0",
        s.sequence, s.position);
  batch_ = &batch;
}

void NoKvCache::append(std::int64_t, HostView<const float, 3> k,
                       HostView<const float, 3> v) {
  k_ = k;
  v_ = v;
}

void NoKvCache::attend(std::int64_t, HostView<float, 3> out, HostView<const float, 3> q,
                       float scale) {
  for (const Segment& s : batch_->segments()) {
    const std::int64_t end = s.begin + s.count;
    cpu::attention<float>(out.rows(s.begin, end), q.rows(s.begin, end),
                          k_.rows(s.begin, end), v_.rows(s.begin, end), scale);
  }
}

}  // namespace lab
