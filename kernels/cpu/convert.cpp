#include "lab/kernels/convert.hpp"

#include <algorithm>

#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {
namespace {

void convert_elements(float* out, const float* in, std::int64_t n) {
  std::copy_n(in, n, out);
}
void convert_elements(Half* out, const float* in, std::int64_t n) {
  kernels().to_half(out, in, n);
}
void convert_elements(BFloat16* out, const float* in, std::int64_t n) {
  kernels().to_bfloat16(out, in, n);
}

}  // namespace

template <class To>
void reference::convert(HostView<To, 1> out, HostView<const float, 1> in) {
  check_convert(out.shape, in.shape);
  for (std::int64_t i = 0; i < in.shape[0]; ++i) out.data[i] = from_float<To>(in[i]);
}

template <class To>
void convert(HostView<To, 1> out, HostView<const float, 1> in) {
  check_convert(out.shape, in.shape);
  parallel_for(out.size(), kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
    convert_elements(out.data + begin, in.data + begin, end - begin);
  });
}

#define LAB_INSTANTIATE(To)                                             \
  template void convert<To>(HostView<To, 1>, HostView<const float, 1>); \
  template void reference::convert<To>(HostView<To, 1>, HostView<const float, 1>);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::cpu
