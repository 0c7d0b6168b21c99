/// @file
/// The KV cache as blocks: a sequence's positions lie wherever its block table says.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "lab/model/config.hpp"
#include "lab/model/kv_cache.hpp"
#include "lab/paging/block_tables.hpp"

namespace lab {

/// A block whose rows are to be copied, and the block that gets them.
struct BlockCopy {
  std::int32_t from = 0, to = 0;
};

/// Keys and values in one piece of memory, (2, L, n_blocks, block_size, K, Dh). Which block
/// belongs to whom is not its business.
/// @par Source Kwon et al. 2023, arXiv:2309.06180, section 4.1
class PagedKvCache final : public KvCache {
 public:
  /// @param tables  says where positions are; must outlive the cache
  /// @param dtype   f32, f16 or bf16
  /// @throws Error for another dtype
  PagedKvCache(const Config& config, const BlockTables& tables, DType dtype,
               Device& device);

  /// Copies whole blocks, of every layer, in this order.
  /// @throws Error if there is no such block; nothing has been copied then
  void copy(std::span<const BlockCopy> copies);

  /// Keys and values of all blocks.
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size()); }

  std::int64_t memory_layout() const override { return memory_layout_; }
  /// @throws Error too if a table has no block for a token
  void begin(const DeviceBatch& batch) override;
  void append(std::int64_t layer, DeviceView<const float, 3> k,
              DeviceView<const float, 3> v) override;
  void attend(std::int64_t layer, DeviceView<float, 3> out, DeviceView<const float, 3> q,
              float scale) override;

 private:
  enum Part { kKeys, kValues };
  KvBlocks layer(Part part, std::int64_t layer) const;
  std::int64_t block_bytes() const;  // of one layer's keys

  Config config_;
  const BlockTables& tables_;
  DType dtype_;
  Device& device_;
  DeviceBuffer memory_;
  // Of the batch between begin() and the end of the forward pass.
  const DeviceBatch* batch_ = nullptr;
  DeviceArray<std::int32_t> upload_;  // slots, then tables
  DeviceView<const std::int32_t, 1> slots_;
  DeviceView<const std::int32_t, 2> block_tables_;
  std::int64_t memory_layout_ = 0;
};

}  // namespace lab
