#include "ladders/rung.hpp"

namespace lab::LAB_GPU {

ladders::Ladder gemm_ladder();
ladders::Ladder rms_norm_ladder();
ladders::Ladder softmax_ladder();
ladders::Ladder gemv_ladder();
ladders::Ladder attention_ladder();

std::vector<ladders::Ladder> all_ladders() {
  return {gemm_ladder(), rms_norm_ladder(), softmax_ladder(), gemv_ladder(),
          attention_ladder()};
}

}  // namespace lab::LAB_GPU
