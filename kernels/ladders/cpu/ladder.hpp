/// @file
/// The CPU ladder: a linear layer with quantised weights from three plain loops to the
/// library's integer kernel, one idea a rung. Every rung has one signature, says before it
/// runs what it will read and multiply, and is compared with cpu::reference::linear.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/linear.hpp"

namespace lab::cpu_ladder {

/// y (T, N) = x (T, K) w (N, K)^T; K is a multiple of 32.
struct Size {
  std::int64_t T = 1, N = 1, K = 32;
};

/// The same weights in every form that a rung reads. A rung reads one of them.
struct Weights {
  HostWeightView file;        // (N, K) blocks of Q4_0 or Q8_0
  const float* decoded;       // (N, K)
  const cpu::Linear* packed;  // the order of kernels/cpu/pack.hpp
};
enum class Form { decoded, file, packed };

/// What a rung computes from.
struct Operands {
  HostView<float, 2> y;        // (T, N)
  HostView<const float, 2> x;  // (T, K)
  Weights w;
};

/// What a rung costs, as far as it can be said in advance.
struct Cost {
  std::int64_t bytes = 0;       ///< of weights that it reads from memory
  std::int64_t multiplies = 0;  ///< multiply instructions, of whatever width
};

/// One step of a ladder.
struct Rung {
  std::string name;
  std::string file;  ///< from kernels/ladders/cpu
  std::string idea;  ///< what is new here, and what it should change
  void (*run)(const Operands& o);
  Cost (*predict)(Size size, DType dtype);
  Form reads;
  /// What the library's kernels must use; "" where the rung has none of them.
  std::string instruction_set = {};
  /// Largest |y - reference| / |reference|, over all of y: rounding of f32 sums.
  double tolerance = 1e-5;
};
/// Where activations are rounded to 8 bits: one part in 254 of the largest of 32.
inline constexpr double kInt8Tolerance = 2e-2;

struct Ladder {
  std::string name;   ///< "gemv"
  std::string about;  ///< what the rungs are about
  Size counted;       ///< the size whose instructions are counted
  Size timed;
  /// Bytes of weights to go through before the same ones again; 0: always the same ones.
  std::int64_t streamed = 0;
  std::vector<Rung> rungs;
};

/// @return the CPU ladders: gemv (one token) and gemm (many)
std::vector<Ladder> all_ladders();

/// @return bytes of weights in the form that a rung reads
std::int64_t weight_bytes(Form form, Size size, DType dtype);

}  // namespace lab::cpu_ladder
