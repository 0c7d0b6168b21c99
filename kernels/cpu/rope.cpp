#include "lab/kernels/rope.hpp"

#include <cmath>

#include "lab/core/parallel.hpp"
#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {

void reference::rope_angles(HostView<float, 2> cos, HostView<float, 2> sin,
                            HostView<const std::int32_t, 1> positions,
                            HostView<const float, 1> inv_freq) {
  check_rope_angles(cos.shape, sin.shape, positions.shape, inv_freq.shape);
  for (std::int64_t t = 0; t < positions.shape[0]; ++t)
    for (std::int64_t i = 0; i < inv_freq.shape[0]; ++i) {
      const float angle = float(positions[t]) * inv_freq[i];
      cos[t].data[i] = float(std::cos(double(angle)));
      sin[t].data[i] = float(std::sin(double(angle)));
    }
}

void rope_angles(HostView<float, 2> cos, HostView<float, 2> sin,
                 HostView<const std::int32_t, 1> positions,
                 HostView<const float, 1> inv_freq) {
  check_rope_angles(cos.shape, sin.shape, positions.shape, inv_freq.shape);
  // Once per forward pass, for all layers and heads: the library's cos and sin will do.
  parallel_for(positions.shape[0], 32, [&](std::int64_t begin, std::int64_t end) {
    reference::rope_angles(cos.rows(begin, end), sin.rows(begin, end),
                           positions.rows(begin, end), inv_freq);
  });
}

// [region definition]
void reference::rope(HostView<float, 3> x, HostView<const float, 2> cos,
                     HostView<const float, 2> sin, RopeLayout layout) {
  check_rope(x.shape, cos.shape, sin.shape);
  const auto [n_tokens, n_heads, head_dim] = x.shape;
  const std::int64_t pairs = head_dim / 2;
  for (std::int64_t t = 0; t < n_tokens; ++t)
    for (std::int64_t h = 0; h < n_heads; ++h)
      for (std::int64_t i = 0; i < pairs; ++i) {
        const bool interleaved = layout == RopeLayout::interleaved;
        float& first = x[t][h].data[interleaved ? 2 * i : i];
        float& second = x[t][h].data[interleaved ? 2 * i + 1 : i + pairs];
        const float a = first, b = second;
        first = a * cos[t][i] - b * sin[t][i];
        second = a * sin[t][i] + b * cos[t][i];
      }
}
// [endregion]

void rope(HostView<float, 3> x, HostView<const float, 2> cos, HostView<const float, 2> sin,
          RopeLayout layout) {
  check_rope(x.shape, cos.shape, sin.shape);
  const auto [n_tokens, n_heads, head_dim] = x.shape;
  const auto rotate = layout == RopeLayout::interleaved ? kernels().rope_interleaved
                                                        : kernels().rope_half_split;
  for_rows(n_tokens, n_heads * head_dim, [&, heads = n_heads](std::int64_t t) {
    for (std::int64_t h = 0; h < heads; ++h)
      rotate(x[t][h].data, cos[t].data, sin[t].data, cos.shape[1]);
  });
}

}  // namespace lab::cpu
