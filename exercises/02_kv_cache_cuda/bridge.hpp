/// @file
/// What tests.cpp calls: the functions of exercise.cu on device memory, in plain C++.
/// Numbers of 16 bits are their bits.
#pragma once

#include <cstdint>

namespace bridge {

/// out[i] = to_half(in[i])
void to_half(std::uint16_t* out, const float* in, int n);
/// `own`: with the exercise's own to_half.
void kv_append(std::uint16_t* cache_k, std::uint16_t* cache_v, const float* k,
               const float* v, const int* slots, int n_tokens, int width, bool own = false);
void gemv(float* y, const float* w, const float* x, int n_rows, int n_cols);

}  // namespace bridge
