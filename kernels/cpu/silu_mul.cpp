#include "lab/kernels/silu_mul.hpp"

#include <cmath>

#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {

// [region definition]
void reference::silu_mul(HostView<float, 2> out, HostView<const float, 2> gate,
                         HostView<const float, 2> up) {
  check_silu_mul(out.shape, gate.shape, up.shape);
  for (std::int64_t i = 0; i < out.size(); ++i)
    out.data[i] = gate.data[i] / (1.0f + std::exp(-gate.data[i])) * up.data[i];
}
// [endregion]

void silu_mul(HostView<float, 2> out, HostView<const float, 2> gate,
              HostView<const float, 2> up) {
  check_silu_mul(out.shape, gate.shape, up.shape);
  parallel_for(out.size(), kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
    kernels().silu_mul(out.data + begin, gate.data + begin, up.data + begin, end - begin);
  });
}

}  // namespace lab::cpu
