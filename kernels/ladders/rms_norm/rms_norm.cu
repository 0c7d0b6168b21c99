#include "ladders/rung.hpp"

namespace lab::LAB_GPU {

Rung rms_norm_naive();
Rung rms_norm_tree();
Rung rms_norm_halves();
Rung rms_norm_shuffles();
Rung rms_norm_vectorised();
Rung rms_norm_registers();

ladders::Ladder rms_norm_ladder() {
  return {.name = "rms_norm",
          .operation = ladders::Operation::rms_norm,
          .formula = "y[t, k] = w[k] x[t, k] / sqrt(mean(x[t, :]^2) + eps)",
          .about =
              "A reduction over each row, and a second pass that needs its result. Few "
              "operations for each byte: the rungs ask for fewer bytes, and make the "
              "threads of a block agree on a sum with less and less ceremony.",
          .counted = {64, 1, 1024},
          .timed = {8192, 1, 8192},
          .tile = {32, 1, 1024},
          .rungs = {rms_norm_naive(), rms_norm_tree(), rms_norm_halves(),
                    rms_norm_shuffles(), rms_norm_vectorised(), rms_norm_registers()}};
}

}  // namespace lab::LAB_GPU
