/// @file
/// A problem for the rungs of a CPU ladder: weights in all forms, the result by definition,
/// and times.
#pragma once

#include <string>
#include <vector>

#include "ladders/cpu/ladder.hpp"

namespace lab::cpu_ladder {

/// Random weights and activations of one size.
class Problem {
 public:
  /// @param streamed bytes of weights in each form: copies of the same, see operands()
  /// @throws Error unless the size is positive, K whole blocks, and dtype Q4_0 or Q8_0
  Problem(Size size, DType dtype, std::int64_t streamed = 0);

  /// @return what `rung` computes from: at every call the next copy of the weights that it
  ///         reads, so that they come from memory and not from a cache
  Operands operands(const Rung& rung);
  Size size() const { return size_; }
  DType dtype() const { return dtype_; }

  /// Runs a rung once, on a result full of NaN.
  /// @return |y - reference| / |reference|; NaN if y has one
  double error(const Rung& rung);

 private:
  Size size_;
  DType dtype_;
  std::vector<float> x_, y_, reference_;
  std::vector<std::vector<std::byte>> files_;
  std::vector<std::vector<float>> decoded_;
  std::vector<cpu::Linear> packed_;
  std::size_t next_ = 0;
};

/// @return why this CPU cannot run the rung; empty if it can
std::string skipped(const Rung& rung);

/// Makes the library's kernels use what the rung needs, or else this CPU's best.
void use_instruction_set(const Rung& rung);

/// Median seconds of processor time of a call of each rung, NaN for those skipped. Rounds
/// of all rungs, one after the other, so that a disturbance of the machine meets all of
/// them.
std::vector<double> median_seconds(Problem& problem, const std::vector<Rung>& rungs,
                                   int rounds);

}  // namespace lab::cpu_ladder
