#include "lab/kv_cache/contiguous.hpp"

#include "lab/core/error.hpp"
#include "lab/kernels/attention.hpp"
#include "lab/kernels/convert.hpp"

namespace lab {

std::int64_t kv_bytes_per_token(const Config& config, std::int64_t element_bytes) {
  return 2 * config.n_layers * config.n_kv_heads * config.head_dim * element_bytes;
}

ContiguousKvCache::ContiguousKvCache(const Config& config, std::int64_t n_sequences,
                                     std::int64_t capacity)
    : config_(config), capacity_(capacity) {
  LAB_CHECK(n_sequences >= 1 && capacity >= 1,
            "KV cache: {} sequences of {} positions asked for; both must be at least 1",
            n_sequences, capacity);
  lengths_.assign(static_cast<std::size_t>(n_sequences), 0);
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
void ContiguousKvCache::begin(const ForwardBatch& batch) {
  for (const Segment& s : batch.segments()) {  // check everything before changing anything
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
  for (const Segment& s : batch.segments())
    lengths_[static_cast<std::size_t>(s.sequence)] += s.count;
  batch_ = &batch;
}
// [endregion]

namespace {

template <class T>
class ContiguousKvCacheOf final : public ContiguousKvCache {
 public:
  ContiguousKvCacheOf(const Config& config, std::int64_t n_sequences, std::int64_t capacity)
      : ContiguousKvCache(config, n_sequences, capacity),
        memory_(static_cast<std::size_t>(n_sequences * capacity *
                                         kv_bytes_per_token(config, sizeof(T)))) {}

  std::int64_t bytes() const override { return static_cast<std::int64_t>(memory_.size()); }

  // [region append]
  void append(std::int64_t layer, HostView<const float, 3> k,
              HostView<const float, 3> v) override {
    for (const Segment& s : batch_->segments()) {
      const std::int64_t end = s.begin + s.count, row = k.shape[1] * k.shape[2];
      const auto keys =
          positions(kKeys, layer, s.sequence).rows(s.position, s.position + s.count);
      const auto values =
          positions(kValues, layer, s.sequence).rows(s.position, s.position + s.count);
      cpu::convert(keys.template reshape<1>({s.count * row}),
                   k.rows(s.begin, end).template reshape<1>({s.count * row}));
      cpu::convert(values.template reshape<1>({s.count * row}),
                   v.rows(s.begin, end).template reshape<1>({s.count * row}));
    }
  }
  // [endregion]

  // [region attend]
  void attend(std::int64_t layer, HostView<float, 3> out, HostView<const float, 3> q,
              float scale) override {
    for (const Segment& s : batch_->segments()) {
      const std::int64_t kv_len = s.position + s.count;
      const HostView<const T, 3> keys = positions(kKeys, layer, s.sequence).rows(0, kv_len);
      const HostView<const T, 3> values =
          positions(kValues, layer, s.sequence).rows(0, kv_len);
      cpu::attention<T>(out.rows(s.begin, s.begin + s.count),
                        q.rows(s.begin, s.begin + s.count), keys, values, scale);
    }
  }
  // [endregion]

 private:
  enum Part { kKeys, kValues };

  /// All positions of one sequence in one layer: (capacity, K, Dh).
  HostView<T, 3> positions(Part part, std::int64_t layer, std::int64_t sequence) {
    const std::int64_t n_sequences = static_cast<std::int64_t>(lengths_.size());
    const std::int64_t index = (part * config_.n_layers + layer) * n_sequences + sequence;
    const std::int64_t row = config_.n_kv_heads * config_.head_dim;
    return {memory_.as<T>() + index * capacity_ * row,
            {capacity_, config_.n_kv_heads, config_.head_dim}};
  }

  Buffer memory_;  // (2, L, sequences, capacity, K, Dh)
};

}  // namespace

std::unique_ptr<ContiguousKvCache> make_contiguous_cache(const Config& config,
                                                         std::int64_t n_sequences,
                                                         std::int64_t capacity,
                                                         DType dtype) {
  switch (dtype) {
    case DType::f32:
      return std::make_unique<ContiguousKvCacheOf<float>>(config, n_sequences, capacity);
    case DType::f16:
      return std::make_unique<ContiguousKvCacheOf<Half>>(config, n_sequences, capacity);
    case DType::bf16:
      return std::make_unique<ContiguousKvCacheOf<BFloat16>>(config, n_sequences, capacity);
    default:
      throw Error(
          fmt::format("KV cache: no {} cache; choose f32, f16 or bf16", name(dtype)));
  }
}

}  // namespace lab
