#include "ladders/rung.hpp"

namespace lab::LAB_GPU {

Rung attention_naive();
Rung attention_online();
Rung attention_tensor_cores();
Rung attention_swizzle();
Rung attention_double_buffer();

ladders::Ladder attention_ladder() {
  return {
      .name = "attention",
      .operation = ladders::Operation::attention,
      .formula =
          "y[t, :] = sum_n softmax_n(q[t, :] . k[n, :] / sqrt(K)) v[n, :], over the "
          "keys n <= N - T + t",
      .about =
          "One causal head in prefill: q = x (T, K), k = w and v (N, K), and K is "
          "head_dim. "
          "Whoever writes the scores (T, N) to global memory asks it for bytes that grow "
          "with T N whatever K is; whoever keeps them on the chip asks for q and y once "
          "and "
          "for k and v once a tile of rows. In Dao et al. 2022, arXiv:2205.14135, theorem "
          "2, "
          "the first is of the order of T K + T N accesses and the second of T N K^2 / M, "
          "with room for M numbers on the chip.",
      .counted = {256, 256, 64},
      .timed = {8192, 8192, 64},
      .tile = {64, 64, 64},
      .rungs = {attention_naive(), attention_online(), attention_tensor_cores(),
                attention_swizzle(), attention_double_buffer()}};
}

}  // namespace lab::LAB_GPU
