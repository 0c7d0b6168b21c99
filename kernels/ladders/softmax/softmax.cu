#include "ladders/rung.hpp"

namespace lab::LAB_GPU {

Rung softmax_naive();
Rung softmax_block();
Rung softmax_online();
Rung softmax_vectorised();
Rung softmax_registers();

ladders::Ladder softmax_ladder() {
  return {
      .name = "softmax",
      .operation = ladders::Operation::softmax,
      .formula = "y[t, k] = exp(x[t, k] - max x[t, :]) / sum_j exp(x[t, j] - max x[t, :])",
      .about =
          "Two reductions, of which the second needs the first: three passes over x, "
          "as the definition has it. The rungs get by with two and with one.",
      .counted = {64, 1, 1024},
      .timed = {8192, 1, 8192},
      .tile = {32, 1, 1024},
      .rungs = {softmax_naive(), softmax_block(), softmax_online(), softmax_vectorised(),
                softmax_registers()}};
}

}  // namespace lab::LAB_GPU
