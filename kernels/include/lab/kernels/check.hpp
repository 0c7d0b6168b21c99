/// @file
/// Shape agreement, written once for every space: the CPU and the CUDA version of an
/// operation call the same check before anything else. Each throws lab::Error with the
/// names and the numbers of what disagrees.
#pragma once

#include <array>
#include <cstdint>

#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/flash_attention.hpp"
#include "lab/kernels/paged_attention.hpp"

namespace lab {

/// The shape of a view of rank N.
template <int N>
using Extents = std::array<std::int64_t, N>;

/// @throws Error unless out is (T, D), ids (T) and the table (vocab_size, D) in whole
/// blocks
void check_embedding(Extents<2> out, Extents<1> ids, DType dtype, std::int64_t vocab_size,
                     std::int64_t model_dim);
/// @throws Error unless every id is a row of the table
void check_ids(HostView<const std::int32_t, 1> ids, std::int64_t vocab_size);
/// @throws Error unless `n` weights are whole blocks of `dtype`
void check_dequantize(Extents<1> out, DType dtype);
/// @throws Error unless out and x are (T, D) and weight is (D)
void check_rms_norm(Extents<2> out, Extents<2> x, Extents<1> weight);
/// @throws Error unless cos and sin are (T, Dh/2), positions (T) and inv_freq (Dh/2)
void check_rope_angles(Extents<2> cos, Extents<2> sin, Extents<1> positions,
                       Extents<1> inv_freq);
/// @throws Error unless x is (T, H, Dh) with Dh even, and cos and sin are (T, Dh/2)
void check_rope(Extents<3> x, Extents<2> cos, Extents<2> sin);
/// @throws Error unless rows and cols are not negative and a row is whole blocks of `dtype`
void check_weights(DType dtype, std::int64_t rows, std::int64_t cols);
/// @throws Error unless y is (T, rows) and x is (T, cols)
void check_linear(Extents<2> y, Extents<2> x, std::int64_t rows, std::int64_t cols);
/// @throws Error unless out and q are (T, H, Dh), k and v (S, K, Dh), S >= T >= 1, H % K ==
/// 0
void check_attention(Extents<3> out, Extents<3> q, Extents<3> k, Extents<3> v);
/// @throws Error unless out and q are (T, H, Dh), k and v (n_blocks, block_size, K, Dh), H
/// % K == 0, and the batch's arrays are (B + 1), (B) and (B, M)
/// @param op the operation that the message names
void check_paged_attention(Extents<3> out, Extents<3> q, Extents<4> k, Extents<4> v,
                           Extents<1> query_starts, Extents<1> kv_lens,
                           Extents<2> block_tables, const char* op = "paged_attention");
/// The same, of a batch in any space.
template <Space S>
void check_paged_attention(Extents<3> out, Extents<3> q, Extents<4> k, Extents<4> v,
                           const PagedBatch<S>& batch) {
  check_paged_attention(out, q, k, v, batch.query_starts.shape, batch.kv_lens.shape,
                        batch.block_tables.shape);
}
/// @throws Error unless the sequences' rows are in order and within the T, each has at
/// least as many positions as queries, and its table names existing blocks for all of them
/// @param op the operation that the message names
void check_paged_batch(const PagedBatch<Space::host>& batch, std::int64_t n_tokens,
                       std::int64_t n_blocks, std::int64_t block_size,
                       const char* op = "paged_attention");
/// @throws Error unless out and q are (T, H, Dh) with Dh >= 1, lse (T, H), k and v (S, K,
/// Dh), H % K == 0, and both starts (B + 1)
void check_flash_attention(Extents<3> out, Extents<2> lse, Extents<3> q, Extents<3> k,
                           Extents<3> v, Extents<1> query_starts, Extents<1> key_starts);
/// The same, of a batch in any space.
template <Space S>
void check_flash_attention(Extents<3> out, Extents<2> lse, Extents<3> q, Extents<3> k,
                           Extents<3> v, const RaggedBatch<S>& batch) {
  check_flash_attention(out, lse, q, k, v, batch.query_starts.shape,
                        batch.key_starts.shape);
}
/// @throws Error as check_paged_attention, and unless lse is (T, H) and Dh >= 1
void check_flash_attention(Extents<3> out, Extents<2> lse, Extents<3> q, Extents<4> k,
                           Extents<4> v, Extents<1> query_starts, Extents<1> kv_lens,
                           Extents<2> block_tables);
/// The same, of a batch in any space.
template <Space S>
void check_flash_attention(Extents<3> out, Extents<2> lse, Extents<3> q, Extents<4> k,
                           Extents<4> v, const PagedBatch<S>& batch) {
  check_flash_attention(out, lse, q, k, v, batch.query_starts.shape, batch.kv_lens.shape,
                        batch.block_tables.shape);
}
/// @throws Error unless both starts rise from 0, to n_tokens and to n_keys
void check_ragged_batch(const RaggedBatch<Space::host>& batch, std::int64_t n_tokens,
                        std::int64_t n_keys);
/// @throws Error unless out, gate and up have one shape
void check_silu_mul(Extents<2> out, Extents<2> gate, Extents<2> up);
/// @throws Error unless out, a and b have one shape
void check_add(Extents<2> out, Extents<2> a, Extents<2> b);
/// @throws Error unless out and x have one shape
void check_softmax(Extents<2> out, Extents<2> x);
/// @throws Error unless out is (T) and x is (T, V) with V >= 1
void check_argmax(Extents<1> out, Extents<2> x);
/// @throws Error unless out and u are (T) and p is (T, V) with V >= 1
void check_sample(Extents<1> out, Extents<2> p, Extents<1> u);
/// @throws Error unless cache is (S, K, Dh), x (T, K, Dh) and slots (T)
void check_kv_append(Extents<3> cache, Extents<3> x, Extents<1> slots);
/// @throws Error if a slot is `rows` or more; a negative one is padding
void check_slots(HostView<const std::int32_t, 1> slots, std::int64_t rows);

}  // namespace lab
