/// @file
/// What this CPU can do: the instruction set in use, and the peaks that speeds are divided
/// by.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace lab::cpu {

/// @return the instruction set that the kernels use: "avx512_vnni", "avx512", "avx2",
/// "neon" or "plain"
const char* instruction_set();

/// @return the instruction sets that this CPU runs, best first
std::vector<const char*> instruction_sets();

/// Makes the kernels use `name` from now on; not while a kernel runs. For tests and
/// measurements: at the start the best is in use.
/// @throws Error unless this CPU runs it
void set_instruction_set(std::string_view name);

/// Bytes per second that n_threads() threads read from memory: the best of several passes
/// over a buffer of `bytes`, by default one that no cache holds. A smaller buffer is read
/// from the cache it fits in: give the size of a model's weights to learn how fast it can
/// be read. Takes about a second.
double read_bandwidth(std::size_t bytes = std::size_t{1} << 30);

/// f32 operations per second of n_threads() threads: fused multiply-adds (two operations
/// each) on registers, with the instruction set in use. Best of several passes.
double flop_peak();

}  // namespace lab::cpu
