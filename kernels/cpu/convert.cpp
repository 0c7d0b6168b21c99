#include "lab/kernels/convert.hpp"

#include "lab/kernels/check.hpp"

namespace lab::cpu {

template <class To>
void reference::convert(HostView<To, 1> out, HostView<const float, 1> in) {
  check_convert(out.shape, in.shape);
  for (std::int64_t i = 0; i < in.shape[0]; ++i) out.data[i] = from_float<To>(in[i]);
}

template <class To>
void convert(HostView<To, 1> out, HostView<const float, 1> in) {
  reference::convert<To>(out, in);
}

#define LAB_INSTANTIATE(To)                                          \
  template void convert<To>(HostView<To, 1>, HostView<const float, 1>); \
  template void reference::convert<To>(HostView<To, 1>, HostView<const float, 1>);
LAB_INSTANTIATE(float)
LAB_INSTANTIATE(Half)
LAB_INSTANTIATE(BFloat16)

}  // namespace lab::cpu
