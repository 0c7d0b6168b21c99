#include "lab/kernels/sample.hpp"

#include <algorithm>

#include "lab/core/error.hpp"
#include "lab/kernels/check.hpp"
#include "ranges.hpp"

namespace lab::cpu {
namespace {

void check_row(std::int64_t t, HostView<const float, 1> p, float u) {
  LAB_CHECK(u >= 0 && u < 1, "sample: u[{}] is {}; give numbers in [0, 1)", t, u);
  bool any = false;
  for (std::int64_t i = 0; i < p.shape[0]; ++i) {
    LAB_CHECK(is_probability(p[i]),
              "sample: p[{}][{}] is {}, which is no probability; give the softmax of a row",
              t, i, p[i]);
    any |= p[i] > 0;
  }
  LAB_CHECK(
      any, "sample: row {} of p has no positive probability; give the softmax of a row", t);
}

/// The index drawn from n probabilities; -1 if none is positive.
std::int64_t draw(const float* p, std::int64_t n, float u) {
  const std::uint64_t target = probability_units(u);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    if ((sum += probability_units(p[i])) > target) return i;
  while (n > 0 && p[n - 1] == 0) --n;
  return n - 1;
}

/// Without a branch, so that the compiler vectorises it.
bool all_probabilities(const float* p, std::int64_t n) {
  int refused = 0;
  for (std::int64_t i = 0; i < n; ++i) refused |= !(p[i] >= 0) | !(p[i] <= 1);
  return refused == 0;
}

}  // namespace

void reference::sample(HostView<std::int32_t, 1> out, HostView<const float, 2> p,
                       HostView<const float, 1> u) {
  check_sample(out.shape, p.shape, u.shape);
  for (std::int64_t t = 0; t < p.shape[0]; ++t) {
    check_row(t, p[t], u[t]);
    out.data[t] = std::int32_t(draw(p[t].data, p.shape[1], u[t]));
  }
}

void sample(HostView<std::int32_t, 1> out, HostView<const float, 2> p,
            HostView<const float, 1> u) {
  check_sample(out.shape, p.shape, u.shape);
  const std::int64_t vocab_size = p.shape[1];
  for_rows(p.shape[0], vocab_size, [&](std::int64_t t) {
    const bool valid = u[t] >= 0 && u[t] < 1 && all_probabilities(p[t].data, vocab_size);
    out.data[t] = valid ? std::int32_t(draw(p[t].data, vocab_size, u[t])) : -1;
  });
  for (std::int64_t t = 0; t < p.shape[0]; ++t)
    if (out[t] < 0) check_row(t, p[t], u[t]);
}

}  // namespace lab::cpu
