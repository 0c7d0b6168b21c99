/// @file
/// What tests.cpp calls: the functions of exercise.cu on device memory, in plain C++.
#pragma once

#include <cstdint>

namespace bridge {

void add(float* out, const float* a, const float* b, std::int64_t n);
/// out[i] = what thread i of a block of `n_threads` gets from warp_sum(in[i]); n_blocks
/// blocks.
void warp_sum(float* out, const float* in, int n_blocks, int n_threads);
/// The same for block_sum; `own`: with the exercise's own warp_sum below it.
void block_sum(float* out, const float* in, int n_blocks, int n_threads, bool own = false);
/// Two sums at once: out[i] = block_sum(in[i]) + 1000 * block_sum(in[n + i]).
void block_sum_twice(float* out, const float* in, int n_threads);
/// `own`: with the exercise's own sums.
void rms_norm(float* out, const float* x, const float* weight, int n_rows, int width,
              float eps, bool own = false);

}  // namespace bridge
