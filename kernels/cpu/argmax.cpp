#include "lab/kernels/argmax.hpp"

#include <cmath>

#include "lab/core/error.hpp"
#include "lab/kernels/check.hpp"

namespace lab::cpu {

void reference::argmax(HostView<std::int32_t, 1> out, HostView<const float, 2> x) {
  check_argmax(out.shape, x.shape);
  const auto [n_tokens, vocab_size] = x.shape;
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    std::int64_t best = 0;
    for (std::int64_t i = 0; i < vocab_size; ++i) {
      LAB_CHECK(!std::isnan(x[t][i]),
                "argmax: x[{}][{}] is NaN, so row {} has no largest element; look for the "
                "operation that produced it",
                t, i, t);
      if (x[t][i] > x[t][best]) best = i;
    }
    out.data[t] = static_cast<std::int32_t>(best);
  }
}

void argmax(HostView<std::int32_t, 1> out, HostView<const float, 2> x) {
  reference::argmax(out, x);
}

}  // namespace lab::cpu
