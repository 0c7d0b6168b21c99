/// @file
/// From the type that a KV cache was asked for to the type that a kernel is compiled for.
#pragma once

#include "lab/core/dtype.hpp"
#include "lab/core/error.hpp"
#include "lab/core/half.hpp"

namespace lab {

/// Calls the template `f` with the type that stores `dtype`.
/// @throws Error unless it is f32, f16 or bf16
template <class F>
void with_kv_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f16:
      return f.template operator()<Half>();
    case DType::bf16:
      return f.template operator()<BFloat16>();
    default:
      throw Error(
          fmt::format("KV cache: no {} cache; choose f32, f16 or bf16", name(dtype)));
  }
}

}  // namespace lab
