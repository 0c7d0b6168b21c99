/// @file
/// Causal grouped-query attention of a batch of sequences whose keys and values lie in
/// blocks.
#pragma once

#include <cstdint>

#include "lab/core/half.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab {

/// Which rows of a flat batch belong to which of B sequences, and where the positions of
/// each are stored: position s of sequence b in row s % block_size of block
/// block_tables[b][s / block_size]. (What vLLM calls query_start_loc, seq_lens and
/// block_table.)
template <Space S>
struct PagedBatch {
  View<const std::int32_t, 1, S>
      query_starts;                        ///< (B + 1): first row of each, rising from 0
  View<const std::int32_t, 1, S> kv_lens;  ///< (B): positions, with the queries'
  View<const std::int32_t, 2, S> block_tables;  ///< (B, M): M blocks hold any of them
  /// No sequence has more queries. The host must know it to choose a GPU's kernels.
  std::int64_t max_queries = 0;
};

}  // namespace lab

namespace lab::cpu {

/// For each sequence what @ref lab::cpu::attention computes: its queries are the last of
/// its kv_len positions, and query t sees those up to its own. A contiguous cache is one
/// whose block is as large as its capacity.
/// @tparam KV float, Half or BFloat16: how keys and values are stored
/// @param[out] out   (T, H, Dh); rows behind the last sequence's are not touched
/// @param[in]  q     (T, H, Dh)
/// @param[in]  k,v   (n_blocks, block_size, K, Dh); blocks may be shared
/// @param[in]  batch sequences without queries are passed over. Entries of a table that
///                   no position needs are not read
/// @param[in]  scale dimensionless, usually 1 / sqrt(Dh)
/// @throws Error if shapes disagree, a length is out of range or a table names a block that
///         does not exist
/// @par Numerics as attention: a query's result is the same bits for any block size, any
///      order of the blocks, any other queries in the call and any number of threads.
/// @par Source Kwon et al. 2023, arXiv:2309.06180, section 4.1
template <class KV>
void paged_attention(HostView<float, 3> out, HostView<const float, 3> q,
                     HostView<const KV, 4> k, HostView<const KV, 4> v,
                     const PagedBatch<Space::host>& batch, float scale);

namespace reference {
/// The definition: @ref lab::cpu::paged_attention by gathering each sequence's rows.
template <class KV>
void paged_attention(HostView<float, 3> out, HostView<const float, 3> q,
                     HostView<const KV, 4> k, HostView<const KV, 4> v,
                     const PagedBatch<Space::host>& batch, float scale);
}  // namespace reference

}  // namespace lab::cpu

// On a GPU the lengths and tables are known to the device alone, so that recorded work can
// be repeated for every position; a kv_len beyond M block_size counts as that. Heads as in
// attention. A sequence with up to four queries is computed in another order of additions
// than one with more; else nothing about the other sequences changes a result's bits.
LAB_GPU_VERSIONS(template <class KV> void paged_attention(
                     DeviceView<float, 3> out, DeviceView<const float, 3> q,
                     DeviceView<const KV, 4> k, DeviceView<const KV, 4> v,
                     const PagedBatch<Space::device>& batch, float scale, Stream stream);)
