/// @file
/// The seam between who decides where positions are stored and who stores them.
#pragma once

#include <cstdint>
#include <span>

namespace lab {

/// Where each sequence's positions are stored: position s in row s % block_size of block
/// blocks(sequence)[s / block_size].
class BlockTables {
 public:
  BlockTables() = default;
  BlockTables(const BlockTables&) = delete;
  BlockTables& operator=(const BlockTables&) = delete;
  virtual ~BlockTables() = default;

  virtual std::int64_t n_blocks() const = 0;
  virtual std::int64_t block_size() const = 0;  ///< positions of a block
  /// Blocks of `sequence` in order of position.
  /// @throws Error if there is no such sequence
  virtual std::span<const std::int32_t> blocks(std::int64_t sequence) const = 0;
  /// Positions whose keys and values are stored, before the coming forward pass.
  /// @throws Error if there is no such sequence
  virtual std::int64_t length(std::int64_t sequence) const = 0;
};

}  // namespace lab
