/// @file
/// Owning host tensors and their views. Host code only: keep it out of .cu files and of the
/// headers they include (it multiplies nvcc's time by five).
#pragma once

#include <xtensor/xtensor.hpp>

#include "lab/core/view.hpp"

namespace lab {

/// An owning, row-major tensor of rank N on the host.
template <class T, std::size_t N>
using Tensor = xt::xtensor<T, N, xt::layout_type::row_major>;

/// @return a tensor of the given shape with unset elements
template <class T, class... Extents>
Tensor<T, sizeof...(Extents)> make_tensor(Extents... extents) {
  using Result = Tensor<T, sizeof...(Extents)>;
  return Result::from_shape({static_cast<typename Result::size_type>(extents)...});
}

namespace detail {
template <class Out, class T, std::size_t N>
HostView<Out, int(N)> view_of(T* data, const std::array<std::size_t, N>& shape) {
  HostView<Out, int(N)> v{data, {}};
  for (std::size_t d = 0; d < N; ++d) v.shape[d] = static_cast<std::int64_t>(shape[d]);
  return v;
}
}  // namespace detail

/// @return a view of the whole tensor, valid until it is resized or destroyed
template <class T, std::size_t N>
HostView<T, int(N)> view(Tensor<T, N>& t) {
  return detail::view_of<T>(t.data(), t.shape());
}
/// @return a read-only view of the whole tensor
template <class T, std::size_t N>
HostView<const T, int(N)> view(const Tensor<T, N>& t) {
  return detail::view_of<const T>(t.data(), t.shape());
}

}  // namespace lab
