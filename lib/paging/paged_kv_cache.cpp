#include "lab/paging/paged_kv_cache.hpp"

#include <algorithm>
#include <bit>

#include "lab/core/error.hpp"
#include "lab/device/kv_type.hpp"

namespace lab {
namespace {

/// @throws Error unless the table has a block for each of the segment's tokens
void check_segment(const Segment& s, const BlockTables& tables) {
  LAB_CHECK(s.position == tables.length(s.sequence),
            "paged KV cache: sequence {} goes on at position {} but {} positions are "
            "stored; feed its tokens in order",
            s.sequence, s.position, tables.length(s.sequence));
  const std::int64_t room = std::ssize(tables.blocks(s.sequence)) * tables.block_size();
  LAB_CHECK(s.position + s.count <= room,
            "paged KV cache: sequence {} needs {} positions but its {} blocks of {} hold "
            "{}; give it more blocks first",
            s.sequence, s.position + s.count, room / tables.block_size(),
            tables.block_size(), room);
}

}  // namespace

PagedKvCache::PagedKvCache(const Config& config, const BlockTables& tables, DType dtype,
                           Device& device)
    : config_(config), tables_(tables), dtype_(dtype), device_(device) {
  with_kv_type(dtype, [&]<class T>() {});  // checks it
  memory_ = DeviceBuffer(
      device, std::size_t(2 * config.n_layers * tables.n_blocks() * block_bytes()));
}

std::int64_t PagedKvCache::block_bytes() const {
  return tables_.block_size() * row_bytes(dtype_, config_.n_kv_heads * config_.head_dim);
}

KvBlocks PagedKvCache::layer(Part part, std::int64_t index) const {
  return {memory_.data() +
              (part * config_.n_layers + index) * tables_.n_blocks() * block_bytes(),
          dtype_,
          {tables_.n_blocks(), tables_.block_size(), config_.n_kv_heads, config_.head_dim}};
}

void PagedKvCache::copy(std::span<const BlockCopy> copies) {
  const auto exists = [&](std::int32_t b) { return b >= 0 && b < tables_.n_blocks(); };
  for (const auto& [from, to] : copies)
    LAB_CHECK(exists(from) && exists(to),
              "paged KV cache: block {} is to be copied to {}; there are blocks 0 to {}",
              from, to, tables_.n_blocks() - 1);
  for (const auto& [from, to] : copies)
    for (const Part part : {kKeys, kValues})
      for (std::int64_t l = 0; l < config_.n_layers; ++l) {
        std::byte* blocks = layer(part, l).data;
        device_.copy(blocks + to * block_bytes(), blocks + from * block_bytes(),
                     std::size_t(block_bytes()));
      }
}

// [region begin]
void PagedKvCache::begin(const DeviceBatch& batch) {
  std::int64_t most_blocks = 1;
  for (const Segment& s : batch.host.segments()) {
    check_segment(s, tables_);
    most_blocks = std::max(most_blocks, std::ssize(tables_.blocks(s.sequence)));
  }
  // Rounded up, so that recorded work is not stale at every new block.
  const std::int64_t width = std::int64_t(std::bit_ceil(std::uint64_t(most_blocks)));
  const std::int64_t block_size = tables_.block_size();
  std::vector<std::int32_t> all;  // slots (T), then block tables (B, width)
  for (const Segment& s : batch.host.segments()) {
    const auto blocks = tables_.blocks(s.sequence);
    for (std::int64_t p = s.position; p < s.position + s.count; ++p)
      all.push_back(blocks[std::size_t(p / block_size)] * std::int32_t(block_size) +
                    std::int32_t(p % block_size));
  }
  for (const Segment& s : batch.host.segments()) {
    const auto blocks = tables_.blocks(s.sequence);
    all.insert(all.end(), blocks.begin(), blocks.end());
    all.insert(all.end(), std::size_t(width) - blocks.size(), -1);
  }
  const std::int64_t T = batch.host.n_tokens(), B = std::ssize(batch.host.segments());
  const auto on_device = upload_.fit<1>(device_, {std::ssize(all)});
  device_.upload(reinterpret_cast<std::byte*>(on_device.data), all.data(),
                 all.size() * sizeof(std::int32_t));
  const DeviceView<const std::int32_t, 2> tables{on_device.data + T, {B, width}};
  if (tables.data != block_tables_.data || tables.shape != block_tables_.shape)
    ++memory_layout_;
  slots_ = on_device.rows(0, T);
  block_tables_ = tables;
  batch_ = &batch;
}
// [endregion]

// [region append]
void PagedKvCache::append(std::int64_t index, DeviceView<const float, 3> k,
                          DeviceView<const float, 3> v) {
  device_.kv_append(layer(kKeys, index).slots(), k, slots_);
  device_.kv_append(layer(kValues, index).slots(), v, slots_);
}
// [endregion]

// [region attend]
void PagedKvCache::attend(std::int64_t index, DeviceView<float, 3> out,
                          DeviceView<const float, 3> q, float scale) {
  device_.paged_attention(
      out, q, layer(kKeys, index), layer(kValues, index),
      {batch_->query_starts, batch_->kv_lens, block_tables_, batch_->max_queries()}, scale);
}
// [endregion]

}  // namespace lab
