#include "lab/decode/recorded_decode.hpp"

namespace lab {

// [region step]
HostView<const float, 2> RecordedDecode::step(std::int64_t position, std::int32_t token) {
  Device& device = transformer_.device();
  ForwardBatch batch;
  batch.add(sequence_, position, {&token, 1});
  transformer_.prepare(batch, cache_);
  const std::pair layout(transformer_.memory_layout(), cache_.memory_layout());
  if (layout != layout_) {
    // The first step in this memory runs as usual, so that everything that takes memory has
    // taken it; the next one is recorded.
    work_.reset();
    layout_ = layout;
    logits_ = transformer_.compute(cache_);
    return download(device, logits_);
  }
  if (work_ == nullptr)
    work_ = device.record([this] { logits_ = transformer_.compute(cache_); });
  work_->run();
  return download(device, logits_);
}
// [endregion]

}  // namespace lab
