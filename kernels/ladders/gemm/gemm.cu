#include "ladders/rung.hpp"

namespace lab::LAB_GPU {

Rung gemm_naive();
Rung gemm_coalesced();
Rung gemm_tiles();
Rung gemm_padding();
Rung gemm_registers();
Rung gemm_vectorised();
Rung gemm_tensor_cores();
Rung gemm_double_buffer();

ladders::Ladder gemm_ladder() {
  return {
      .name = "gemm",
      .operation = ladders::Operation::multiply,
      .formula = "y (T, N) = x (T, K) w (N, K)^T",
      .about =
          "The linear layer in prefill: T tokens through a weight matrix. Every element "
          "of x is used N times and every element of w T times; the rungs differ in how "
          "often each is fetched, and from where.",
      .counted = {128, 256, 128},
      .timed = {4096, 4096, 4096},
      .tile = {128, 128, 32},
      .rungs = {gemm_naive(), gemm_coalesced(), gemm_tiles(), gemm_padding(),
                gemm_registers(), gemm_vectorised(), gemm_tensor_cores(),
                gemm_double_buffer()}};
}

}  // namespace lab::LAB_GPU
