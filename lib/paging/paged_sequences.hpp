/// @file
/// Sequences in blocks, for decoding several answers to one prompt.
#pragma once

#include "lab/decode/sequence_store.hpp"
#include "lab/model/transformer.hpp"
#include "lab/paging/block_manager.hpp"

namespace lab {

/// A BlockManager and the PagedKvCache that stores what it decides.
class PagedSequences final : public SequenceStore {
 public:
  /// Where the model runs. @throws Error for sizes below 1 or another dtype
  PagedSequences(const Transformer& transformer, const BlockManagerConfig& config,
                 DType dtype = DType::f32)
      : manager_(config),
        cache_(transformer.config(), manager_, dtype, transformer.device()) {}

  KvCache& cache() override { return cache_; }
  std::int64_t open(std::span<const std::int32_t> text) override;
  std::int64_t length(std::int64_t sequence) const override {
    return manager_.length(sequence);
  }
  void grow(std::int64_t sequence, std::int64_t n_positions) override;
  void stored(std::int64_t sequence, std::span<const std::int32_t> text) override;
  std::int64_t fork(std::int64_t sequence) override { return manager_.fork(sequence); }
  void close(std::int64_t sequence) override { manager_.close(sequence); }

  BlockManager& manager() { return manager_; }
  /// Usage when most blocks were in use, since the last call.
  BlockUsage take_peak() { return std::exchange(peak_, {}); }
  std::int64_t n_copied() const { return n_copied_; }  ///< blocks, before writes

 private:
  BlockManager manager_;
  PagedKvCache cache_;
  BlockUsage peak_;
  std::int64_t n_copied_ = 0;
};

}  // namespace lab
