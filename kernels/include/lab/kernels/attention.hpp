/// @file
/// Causal grouped-query attention over a contiguous key/value history.
#pragma once

#include "lab/core/half.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::cpu {

/// out[t, h, :] = sum_s softmax_s(scale * q[t, h, :] . k[s, g, :]) * v[s, g, :], where head
/// h reads kv head g = h / (H / K). The T queries are the last T of the S positions, so
/// query t sees the keys s <= S - T + t.
/// @tparam KV float, Half or BFloat16: how keys and values are stored
/// @param[out] out (T, H, Dh)
/// @param[in]  q   (T, H, Dh)
/// @param[in]  k,v (S, K, Dh)
/// @param[in]  scale dimensionless, usually 1 / sqrt(Dh)
/// @throws Error unless the shapes agree, S >= T >= 1 and H % K == 0
/// @par Numerics f32. Keys are taken in chunks of 128, each with its largest score
///      subtracted, so that no finite score overflows, and merged in order. A query's
///      result does not depend on the other queries of the call, nor on the number of
///      threads: it is the same bits.
/// @par Source Vaswani et al. 2017, arXiv:1706.03762; Ainslie et al. 2023, arXiv:2305.13245
template <class KV>
void attention(HostView<float, 3> out, HostView<const float, 3> q, HostView<const KV, 3> k,
               HostView<const KV, 3> v, float scale);

namespace reference {
/// The definition: @ref lab::cpu::attention in plain loops.
template <class KV>
void attention(HostView<float, 3> out, HostView<const float, 3> q, HostView<const KV, 3> k,
               HostView<const KV, 3> v, float scale);
}  // namespace reference

}  // namespace lab::cpu

// On a GPU the history's length is known to the device alone, so that recorded work can be
// repeated for every position: k and v are (S, K, Dh) with room for S positions, of which
// the first kv_len[0] are valid, T <= kv_len[0] <= S. The T queries are the last of those.
// A head's size must be a multiple of 8, at most 256, and every vector 16-byte aligned. A
// query's result does not depend on S, nor on the other queries of the call, except that
// calls of up to four tokens add in another order than longer ones.
LAB_GPU_VERSIONS(template <class KV>
                 void attention(DeviceView<float, 3> out, DeviceView<const float, 3> q,
                                DeviceView<const KV, 3> k, DeviceView<const KV, 3> v,
                                float scale, DeviceView<const std::int32_t, 1> kv_len,
                                Stream stream);)
