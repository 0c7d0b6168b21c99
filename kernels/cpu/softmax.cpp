#include "lab/kernels/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {

// [region definition]
void reference::softmax(HostView<float, 2> out, HostView<const float, 2> x) {
  check_softmax(out.shape, x.shape);
  const auto [n_tokens, vocab_size] = x.shape;
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    float largest = -INFINITY;
    double sum = 0;  // a vocabulary is long: in f32 the last terms would lose five digits
    for (std::int64_t i = 0; i < vocab_size; ++i) largest = std::max(largest, x[t][i]);
    for (std::int64_t i = 0; i < vocab_size; ++i)
      sum += out[t].data[i] = std::exp(x[t][i] - largest);
    for (std::int64_t i = 0; i < vocab_size; ++i) out[t].data[i] /= float(sum);
  }
}
// [endregion]

void softmax(HostView<float, 2> out, HostView<const float, 2> x) {
  check_softmax(out.shape, x.shape);
  const std::int64_t vocab_size = x.shape[1];
  for_rows(x.shape[0], vocab_size,
           [&](std::int64_t t) { kernels().softmax(out[t].data, x[t].data, vocab_size); });
}

}  // namespace lab::cpu
