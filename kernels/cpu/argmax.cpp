#include "lab/kernels/argmax.hpp"

#include <algorithm>
#include <cmath>

#include "lab/core/error.hpp"
#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {
namespace {

[[noreturn]] void report_nan(std::int64_t t, std::int64_t i) {
  throw Error(
      fmt::format("argmax: x[{}][{}] is NaN, so row {} has no largest element; look for "
                  "the operation that produced it",
                  t, i, t));
}

}  // namespace

void reference::argmax(HostView<std::int32_t, 1> out, HostView<const float, 2> x) {
  check_argmax(out.shape, x.shape);
  const auto [n_tokens, vocab_size] = x.shape;
  for (std::int64_t t = 0; t < n_tokens; ++t) {
    std::int64_t best = 0;
    for (std::int64_t i = 0; i < vocab_size; ++i) {
      if (std::isnan(x[t][i])) report_nan(t, i);
      if (x[t][i] > x[t][best]) best = i;
    }
    out.data[t] = static_cast<std::int32_t>(best);
  }
}

void argmax(HostView<std::int32_t, 1> out, HostView<const float, 2> x) {
  check_argmax(out.shape, x.shape);
  for_rows(x.shape[0], x.shape[1], [&](std::int64_t t) {
    out.data[t] = static_cast<std::int32_t>(kernels().argmax(x[t].data, x.shape[1]));
  });
  for (std::int64_t t = 0; t < x.shape[0]; ++t)
    if (out[t] < 0) {
      const float* row = x[t].data;
      report_nan(t,
                 std::find_if(row, row + x.shape[1], [](float v) { return v != v; }) - row);
    }
}

}  // namespace lab::cpu
