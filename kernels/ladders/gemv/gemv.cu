#include "ladders/rung.hpp"

namespace lab::LAB_GPU {

Rung gemv_naive();
Rung gemv_coalesced();
Rung gemv_vectorised();
Rung gemv_rows();
Rung gemv_half();
Rung gemv_int8();

ladders::Ladder gemv_ladder() {
  return {.name = "gemv",
          .operation = ladders::Operation::multiply,
          .formula = "y (1, N) = x (1, K) w (N, K)^T",
          .about =
              "The linear layer in decode: one token. Each weight is used once, so nothing "
              "can be faster than reading w from memory; the rungs ask for less of "
              "everything else, and then for fewer bytes of w.",
          .counted = {1, 512, 1024},
          .timed = {1, 16384, 8192},
          .tile = {1, 128, 512},
          .rungs = {gemv_naive(), gemv_coalesced(), gemv_vectorised(), gemv_rows(),
                    gemv_half(), gemv_int8()}};
}

}  // namespace lab::LAB_GPU
