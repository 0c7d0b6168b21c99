/// @file
/// Decode steps that are launched as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "lab/model/kv_cache.hpp"
#include "lab/model/transformer.hpp"

namespace lab {

/// The decode steps of one sequence. A step is some hundred kernels of a few microseconds
/// each, and giving them to a GPU one by one takes the host as long as running them: so the
/// kernels are recorded once, as a CUDA graph, and each step launches the graph. What
/// changes from step to step (the token, its position) lies in device memory.
class RecordedDecode {
 public:
  /// @param transformer, cache  must outlive this
  RecordedDecode(Transformer& transformer, KvCache& cache, std::int64_t sequence = 0)
      : transformer_(transformer), cache_(cache), sequence_(sequence) {}

  /// Feeds one token, as Transformer::forward() does with a batch of it.
  /// @return logits (1, V), valid until the next step
  /// @throws Error as forward()
  HostView<const float, 2> step(std::int64_t position, std::int32_t token);

 private:
  Transformer& transformer_;
  KvCache& cache_;
  std::int64_t sequence_;
  std::unique_ptr<RecordedWork> work_;
  /// Of the transformer's memory and of the cache's, when the work was recorded.
  std::pair<std::int64_t, std::int64_t> layout_{-1, -1};
  DeviceView<const float, 2> logits_;
};

}  // namespace lab
