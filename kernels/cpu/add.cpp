#include "lab/kernels/add.hpp"

#include "lab/kernels/check.hpp"
#include "ranges.hpp"
#include "simd/table.hpp"

namespace lab::cpu {

void reference::add(HostView<float, 2> out, HostView<const float, 2> a,
                    HostView<const float, 2> b) {
  check_add(out.shape, a.shape, b.shape);
  for (std::int64_t i = 0; i < out.size(); ++i) out.data[i] = a.data[i] + b.data[i];
}

void add(HostView<float, 2> out, HostView<const float, 2> a, HostView<const float, 2> b) {
  check_add(out.shape, a.shape, b.shape);
  parallel_for(out.size(), kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
    kernels().add(out.data + begin, a.data + begin, b.data + begin, end - begin);
  });
}

}  // namespace lab::cpu
