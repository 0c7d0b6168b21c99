/// @file
/// Causal grouped-query attention over a contiguous key/value history.
#pragma once

#include "lab/core/half.hpp"
#include "lab/core/view.hpp"

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
/// @par Numerics f32; the row's maximum is subtracted, so no finite score overflows. A
/// query's
///      result does not depend on the other queries of the call.
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
