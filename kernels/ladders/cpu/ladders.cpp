#include "cpu/pack.hpp"
#include "ladders/cpu/rungs.hpp"

namespace lab::cpu_ladder {

std::vector<Ladder> all_ladders() {
  return {
      {.name = "gemv",
       .about =
           "One token, as in decoding: every weight is used once, so the goal is to read "
           "weights as fast as the memory gives them. The first rungs are far from it: "
           "they "
           "are limited by their instructions.",
       .counted = {1, 256, 1024},
       .timed = {1, 2048, 2048},
       .streamed = std::int64_t{1} << 29,
       .rungs = {plain(), gemv_blocks(), gemv_accumulators(), gemv_packed(), library_f32(),
                 library_int8(), library_vnni()}},
      {.name = "gemm",
       .about =
           "Many tokens, as in reading a prompt: every weight is used once a token, so the "
           "goal is to keep the multipliers busy. Weights come from memory once at most; "
           "what counts is how many instructions a product costs.",
       .counted = {8, 256, 1024},
       .timed = {64, 1024, 1024},
       .rungs = {plain(), gemm_rows(), gemm_accumulators(), gemm_panels(), gemm_registers(),
                 library_f32(), library_int8(), library_vnni()}},
  };
}

std::int64_t weight_bytes(Form form, Size size, DType dtype) {
  if (form == Form::decoded) return size.N * size.K * std::int64_t{sizeof(float)};
  if (form == Form::file) return size.N * row_bytes(dtype, size.K);
  return cpu::packed_bytes(dtype, size.N, size.K);
}

}  // namespace lab::cpu_ladder
