#include "lab/kernels/rms_norm.hpp"

#include <cmath>

#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {

// [region definition]
void reference::rms_norm(HostView<float, 2> out, HostView<const float, 2> x,
                         HostView<const float, 1> weight, float eps) {
  check_rms_norm(out.shape, x.shape, weight.shape);
  const auto [n_tokens, model_dim] = x.shape;
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    float squares = 0;
    for (std::int64_t d = 0; d < model_dim; ++d) squares += x[t][d] * x[t][d];
    const float scale = 1.0f / std::sqrt(squares / float(model_dim) + eps);
    for (std::int64_t d = 0; d < model_dim; ++d)
      out[t].data[d] = x[t][d] * scale * weight[d];
  }
}
// [endregion]

void rms_norm(HostView<float, 2> out, HostView<const float, 2> x,
              HostView<const float, 1> weight, float eps) {
  check_rms_norm(out.shape, x.shape, weight.shape);
  const std::int64_t model_dim = x.shape[1];
  for_rows(x.shape[0], model_dim, [&](std::int64_t t) {
    kernels().rms_norm(out[t].data, x[t].data, weight.data, model_dim, eps);
  });
}

}  // namespace lab::cpu
