/// @file
/// Non-owning, row-major views: what kernels take. Cheap to compile, so .cu files include
/// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lab/core/dtype.hpp"

namespace lab {

/// Where memory lives. It is part of a view's type, so that handing device memory to a CPU
/// kernel does not compile.
enum class Space { host, device };

/// A row-major, contiguous array of `Rank` dimensions in memory that someone else owns.
template <class T, int Rank, Space S>
struct View {
  T* data = nullptr;
  std::array<std::int64_t, Rank> shape{};

  constexpr std::int64_t size() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }

  /// The sub-view at `i` along the first dimension.
  constexpr auto operator[](std::int64_t i) const {
    if constexpr (Rank == 1) {
      return data[i];
    } else {
      View<T, Rank - 1, S> v{data, {}};
      std::int64_t stride = 1;
      for (int d = 1; d < Rank; ++d) stride *= v.shape[d - 1] = shape[d];
      v.data += i * stride;
      return v;
    }
  }

  /// Rows [begin, end) of the first dimension.
  constexpr View rows(std::int64_t begin, std::int64_t end) const {
    std::int64_t stride = 1;
    for (int d = 1; d < Rank; ++d) stride *= shape[d];
    View v{data + begin * stride, shape};
    v.shape[0] = end - begin;
    return v;
  }

  /// The same elements under another shape of the same size.
  template <int R>
  constexpr View<T, R, S> reshape(std::array<std::int64_t, R> to) const {
    return {data, to};
  }

  constexpr operator View<const T, Rank, S>() const requires(!std::is_const_v<T>) {
    return {data, shape};
  }
};

/// What CPU kernels take.
template <class T, int Rank>
using HostView = View<T, Rank, Space::host>;
/// What CUDA kernels take.
template <class T, int Rank>
using DeviceView = View<T, Rank, Space::device>;

/// A weight matrix (rows, cols) = (out, in) as it lies in a model file: each row is
/// `row_bytes(dtype, cols)` bytes of whole blocks.
template <Space S>
struct WeightView {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t rows = 0, cols = 0;

  constexpr std::int64_t row_stride() const { return row_bytes(dtype, cols); }
  constexpr std::int64_t bytes() const { return rows * row_stride(); }
  constexpr const std::byte* row(std::int64_t r) const { return data + r * row_stride(); }
};
/// Weights in host memory, as a mapped file has them.
using HostWeightView = WeightView<Space::host>;

}  // namespace lab
