/// @file
/// Attention that never stores its matrix of scores: forward with the logarithm of the
/// softmax's sum, backward by recomputation, and the merge of parts. Beside it the naive
/// form, which stores the matrix, to compare with.
#pragma once

#include <cstdint>

#include "lab/core/half.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"
#include "lab/kernels/paged_attention.hpp"

namespace lab {

/// Which keys a query sees.
enum class AttentionMask {
  none,    ///< all of its sequence
  causal,  ///< query t of T sees the keys s <= S - T + t: the last query sees all
};

/// B sequences, one behind the other: which rows of q and of k, v are whose.
template <Space S>
struct RaggedBatch {
  View<const std::int32_t, 1, S> query_starts;  ///< (B + 1), rising from 0 to T
  View<const std::int32_t, 1, S> key_starts;    ///< (B + 1), rising from 0 to S
  /// No sequence has more queries, none more keys: what the host must know to choose a
  /// GPU's kernels. A CPU does not read them.
  std::int64_t max_queries = 0;
  std::int64_t max_keys = 0;  ///< see max_queries
};

}  // namespace lab

namespace lab::cpu {

/// For each sequence out[t, h, :] = sum_s softmax_s(scale * q[t, h, :] . k[s, g, :])
/// * v[s, g, :] with g = h / (H / K), and lse[t, h] = log sum_s exp(score). A query that
/// sees no key has out = 0 and lse = -infinity.
/// @tparam KV float, Half or BFloat16: how keys and values are stored
/// @param[out] out (T, H, Dh)
/// @param[out] lse (T, H), natural logarithm
/// @param[in]  q   (T, H, Dh)
/// @param[in]  k,v (S, K, Dh)
/// @param[in]  scale dimensionless, usually 1 / sqrt(Dh)
/// @throws Error unless the shapes agree, H % K == 0, Dh >= 1 and the starts rise to T, S
/// @par Numerics f32, keys in chunks of 128 merged in order: where the mask is causal and
///      S >= T, out has the bits of @ref lab::cpu::attention. Any number of threads and any
///      other sequences give the same bits.
/// @par Cost 4 Dh operations for each visible pair and head; memory beside the operands is
///      O(Dh) for each row of a task, whatever S is
/// @par Source Dao et al. 2022, arXiv:2205.14135, algorithm 1; Dao 2023, arXiv:2307.08691
template <class KV>
void flash_attention(HostView<float, 3> out, HostView<float, 2> lse,
                     HostView<const float, 3> q, HostView<const KV, 3> k,
                     HostView<const KV, 3> v, const RaggedBatch<Space::host>& batch,
                     float scale, AttentionMask mask);

/// The same of sequences whose keys and values lie in blocks.
/// @param[out] out (T, H, Dh); rows behind the last sequence's are not touched
/// @param[out] lse (T, H); nor are they here
/// @param[in]  q   (T, H, Dh)
/// @param[in]  k,v (n_blocks, block_size, K, Dh); blocks may be shared
/// @param[in]  batch as paged_attention's
/// @throws Error as paged_attention, or if lse is not (T, H)
/// @par Numerics as above: what gathering the rows first would give, in its bits, for any
///      block size and order of the blocks. With a causal mask, out has the bits of
///      @ref lab::cpu::paged_attention.
/// @par Source Kwon et al. 2023, arXiv:2309.06180, section 4.1
template <class KV>
void flash_attention(HostView<float, 3> out, HostView<float, 2> lse,
                     HostView<const float, 3> q, HostView<const KV, 4> k,
                     HostView<const KV, 4> v, const PagedBatch<Space::host>& batch,
                     float scale, AttentionMask mask);

/// The same result from a stored matrix: scores as one product, softmax of its rows, the
/// second product, with the library's matrix multiplication. Of a causal matrix, blocks of
/// 256 queries leave out the keys that none of them sees.
/// @return bytes of the matrix of one head of the longest sequence: 4 T S
/// @throws Error as flash_attention
/// @par Numerics f32. A value that a query does not see, but another of its block does,
///      must be finite.
std::int64_t naive_attention(HostView<float, 3> out, HostView<const float, 3> q,
                             HostView<const float, 3> k, HostView<const float, 3> v,
                             const RaggedBatch<Space::host>& batch, float scale,
                             AttentionMask mask);

/// Derivatives of a loss by q, k and v, given that by out. Weights are computed again as
/// exp(score - lse), one tile of 64 keys at a time. With D = sum_d dout * out:
/// dv = P^T dout, dS = P * (dout v^T - D), dq = scale dS k, dk = scale dS^T q; of k and v
/// summed over the H / K heads that share them.
/// @param[out] dq       (T, H, Dh)
/// @param[out] dk,dv    (S, K, Dh)
/// @param[in]  dout     (T, H, Dh)
/// @param[in]  q,k,v    what flash_attention read
/// @param[in]  out,lse  what flash_attention gave
/// @throws Error as flash_attention, or if a derivative's shape is not its operand's
/// @par Numerics f32, sums in the order of queries, then heads, and of keys: the same bits
///      for any number of threads
/// @par Cost 10 Dh operations for each visible pair and head; memory O(Dh) for each thread
/// @par Source Dao 2023, arXiv:2307.08691, algorithm 2
void flash_attention_backward(HostView<float, 3> dq, HostView<float, 3> dk,
                              HostView<float, 3> dv, HostView<const float, 3> dout,
                              HostView<const float, 3> q, HostView<const float, 3> k,
                              HostView<const float, 3> v, HostView<const float, 3> out,
                              HostView<const float, 2> lse,
                              const RaggedBatch<Space::host>& batch, float scale,
                              AttentionMask mask);

/// Merges the attention of the same queries to other keys into a: with m = max(lse_a,
/// lse_b), weights exp(lse - m) and their sum w, out = sum(weight * out) / w and lse = m +
/// log w. A part without keys (lse = -infinity) changes nothing, whatever its out.
/// @param[in,out] out_a (T, H, Dh)
/// @param[in,out] lse_a (T, H)
/// @param[in]     out_b (T, H, Dh)
/// @param[in]     lse_b (T, H)
/// @throws Error unless the shapes agree
/// @par Numerics f32; in any order of the parts the same up to rounding
/// @par Source Dao et al. 2023, "Flash-Decoding for long-context inference"
void merge_attention_states(HostView<float, 3> out_a, HostView<float, 2> lse_a,
                            HostView<const float, 3> out_b, HostView<const float, 2> lse_b);

namespace reference {
/// The definition: @ref lab::cpu::flash_attention in plain loops, sums in f64.
template <class KV>
void flash_attention(HostView<float, 3> out, HostView<float, 2> lse,
                     HostView<const float, 3> q, HostView<const KV, 3> k,
                     HostView<const KV, 3> v, const RaggedBatch<Space::host>& batch,
                     float scale, AttentionMask mask);

/// The definition: @ref lab::cpu::flash_attention_backward from stored weights (T, S) of a
/// head, in f64. It needs neither out nor lse.
void flash_attention_backward(HostView<float, 3> dq, HostView<float, 3> dk,
                              HostView<float, 3> dv, HostView<const float, 3> dout,
                              HostView<const float, 3> q, HostView<const float, 3> k,
                              HostView<const float, 3> v,
                              const RaggedBatch<Space::host>& batch, float scale,
                              AttentionMask mask);
}  // namespace reference

}  // namespace lab::cpu

// On a GPU, f16 and bf16 with heads of 32, 64 or 128 are multiplied by tensor cores, for
// which q is rounded to the type of k, and so are the weights: of the 11 bits of f16 (8 of
// bf16) sums in f32 are made. A value that a query does not see, but another of its tile
// does, must be finite. f32, and other heads (a multiple of 8, at most 256), are computed
// in f32, and so is bf16 before compute capability 8. Sequences in calls of up to four
// queries each have their keys split among blocks, whose results are merged by their lse.
// Starts, lengths and block tables are the caller's responsibility: they are known to the
// device alone. Of a paged batch, the host knows no more of the lengths than that M blocks
// hold them; what lies behind a length is not read. The backward pass is f32 without
// atomics, for heads of at most 128.
LAB_GPU_VERSIONS(
    template <class KV>
    void flash_attention(DeviceView<float, 3> out, DeviceView<float, 2> lse,
                         DeviceView<const float, 3> q, DeviceView<const KV, 3> k,
                         DeviceView<const KV, 3> v, const RaggedBatch<Space::device>& batch,
                         float scale, AttentionMask mask, Stream stream);
    template <class KV>
    void flash_attention(DeviceView<float, 3> out, DeviceView<float, 2> lse,
                         DeviceView<const float, 3> q, DeviceView<const KV, 4> k,
                         DeviceView<const KV, 4> v, const PagedBatch<Space::device>& batch,
                         float scale, AttentionMask mask, Stream stream);
    void flash_attention_backward(
        DeviceView<float, 3> dq, DeviceView<float, 3> dk, DeviceView<float, 3> dv,
        DeviceView<const float, 3> dout, DeviceView<const float, 3> q,
        DeviceView<const float, 3> k, DeviceView<const float, 3> v,
        DeviceView<const float, 3> out, DeviceView<const float, 2> lse,
        const RaggedBatch<Space::device>& batch, float scale, AttentionMask mask,
        Stream stream);)
