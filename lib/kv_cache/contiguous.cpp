#include "lab/kv_cache/contiguous.hpp"

#include "lab/core/error.hpp"
#include "lab/device/kv_type.hpp"

namespace lab {

std::int64_t kv_bytes_per_token(const Config& config, std::int64_t element_bytes) {
  return 2 * config.n_layers * config.n_kv_heads * config.head_dim * element_bytes;
}

ContiguousKvCache::ContiguousKvCache(const Config& config, std::int64_t n_sequences,
                                     std::int64_t capacity, DType dtype, Device& device)
    : config_(config), capacity_(capacity), dtype_(dtype), device_(device) {
  LAB_CHECK(n_sequences >= 1 && capacity >= 1,
            "KV cache: {} sequences of {} positions asked for; both must be at least 1",
            n_sequences, capacity);
  std::int64_t element_bytes = 0;
  with_kv_type(dtype, [&]<class T>() { element_bytes = sizeof(T); });
  lengths_.assign(static_cast<std::size_t>(n_sequences), 0);
  memory_ = DeviceBuffer(
      device, static_cast<std::size_t>(n_sequences * capacity *
                                       kv_bytes_per_token(config, element_bytes)));
}

std::int64_t ContiguousKvCache::length(std::int64_t sequence) const {
  LAB_CHECK(sequence >= 0 && sequence < std::int64_t(lengths_.size()),
            "KV cache: sequence {} is not in a cache of {} sequences", sequence,
            lengths_.size());
  return lengths_[static_cast<std::size_t>(sequence)];
}

void ContiguousKvCache::truncate(std::int64_t sequence, std::int64_t to) {
  LAB_CHECK(to >= 0 && to <= length(sequence),
            "KV cache: cannot truncate sequence {} to {} positions; it stores {}", sequence,
            to, length(sequence));
  lengths_[static_cast<std::size_t>(sequence)] = to;
}

// [region begin]
void ContiguousKvCache::begin(const DeviceBatch& batch) {
  for (const Segment& s :
       batch.host.segments()) {  // check everything before changing anything
    LAB_CHECK(
        s.position == length(s.sequence),
        "KV cache: sequence {} goes on at position {} but {} positions are stored; feed "
        "its tokens in order",
        s.sequence, s.position, length(s.sequence));
    LAB_CHECK(
        s.position + s.count <= capacity_,
        "KV cache: sequence {} needs {} positions but the cache holds {}; make the cache "
        "larger or the text shorter",
        s.sequence, s.position + s.count, capacity_);
  }
  for (const Segment& s : batch.host.segments())
    lengths_[static_cast<std::size_t>(s.sequence)] += s.count;
  batch_ = &batch;
}
// [endregion]

/// Keys or values of one layer: (sequences, capacity, K, Dh). To attention, each sequence
/// is stored in one block as large as its capacity.
KvBlocks ContiguousKvCache::layer(Part part, std::int64_t layer) const {
  const std::int64_t n_sequences = static_cast<std::int64_t>(lengths_.size());
  const std::int64_t bytes = row_bytes(dtype_, config_.n_kv_heads * config_.head_dim);
  return {
      memory_.data() + (part * config_.n_layers + layer) * n_sequences * capacity_ * bytes,
      dtype_,
      {n_sequences, capacity_, config_.n_kv_heads, config_.head_dim}};
}

/// All positions of one sequence in one layer: (capacity, K, Dh).
KvView ContiguousKvCache::positions(Part part, std::int64_t index,
                                    std::int64_t sequence) const {
  const KvView all = layer(part, index).slots();
  const std::int64_t bytes = row_bytes(dtype_, config_.n_kv_heads * config_.head_dim);
  return {all.data + sequence * capacity_ * bytes,
          dtype_,
          {capacity_, config_.n_kv_heads, config_.head_dim}};
}

// [region append]
void ContiguousKvCache::append(std::int64_t layer, DeviceView<const float, 3> k,
                               DeviceView<const float, 3> v) {
  for (const Segment& s : batch_->host.segments()) {
    const std::int64_t end = s.begin + s.count;
    const auto slots =
        batch_->positions.rows(s.begin, end);  // token t goes to row slots[t]
    device_.kv_append(positions(kKeys, layer, s.sequence), k.rows(s.begin, end), slots);
    device_.kv_append(positions(kValues, layer, s.sequence), v.rows(s.begin, end), slots);
  }
}
// [endregion]

// [region attend]
void ContiguousKvCache::attend(std::int64_t index, DeviceView<float, 3> out,
                               DeviceView<const float, 3> q, float scale) {
  const auto& sequences = batch_->sequences;  // each is the number of its one block
  device_.paged_attention(
      out, q, layer(kKeys, index), layer(kValues, index),
      {batch_->query_starts, batch_->kv_lens, sequences.reshape<2>({sequences.shape[0], 1}),
       batch_->max_queries()},
      scale);
}
// [endregion]

std::unique_ptr<ContiguousKvCache> make_contiguous_cache(const Config& config,
                                                         std::int64_t n_sequences,
                                                         std::int64_t capacity, DType dtype,
                                                         Device& device) {
  return std::make_unique<ContiguousKvCache>(config, n_sequences, capacity, dtype, device);
}

std::unique_ptr<ContiguousKvCache> make_contiguous_cache(const Transformer& transformer,
                                                         std::int64_t n_sequences,
                                                         std::int64_t capacity,
                                                         DType dtype) {
  return make_contiguous_cache(transformer.config(), n_sequences, capacity, dtype,
                               transformer.device());
}

}  // namespace lab
