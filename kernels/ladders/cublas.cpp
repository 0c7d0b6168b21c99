#include "ladders/cublas.hpp"

#ifdef LAB_HAS_CUBLAS

#include <cublas_v2.h>

#include "lab/core/error.hpp"

namespace lab::ladders {
namespace {

void check(cublasStatus_t status) {
  LAB_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLAS failed: {}",
            cublasGetStatusString(status));
}

cublasHandle_t handle() {
  static const cublasHandle_t made = [] {
    cublasHandle_t h = nullptr;
    check(cublasCreate(&h));
    return h;
  }();
  return made;
}

// cuBLAS counts columns first: what it calls a (K, N) matrix is our w, and it writes our y.
void multiply(const Operands& o, const void* x, const void* w, cudaDataType_t type,
              Stream stream) {
  const int T = int(o.x.shape[0]), N = int(o.w.shape[0]), K = int(o.x.shape[1]);
  const float one = 1, zero = 0;
  check(cublasSetStream(handle(), stream));
  check(cublasGemmEx(handle(), CUBLAS_OP_T, CUBLAS_OP_N, N, T, K, &one, w, type, K, x, type,
                     K, &zero, o.y.data, CUDA_R_32F, N, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT));
}

}  // namespace

std::vector<Rung> cublas_peers() {
  const auto f32 = [](const Operands& o, Stream stream) {
    multiply(o, o.x.data, o.w.data, CUDA_R_32F, stream);
  };
  const auto f16 = [](const Operands& o, Stream stream) {
    multiply(o, o.x16.data, o.w16.data, CUDA_R_16F, stream);
  };
  return {{.name = "cuBLAS, f32", .run = f32},
          {.name = "cuBLAS, f16", .run = f16, .bytes = 2}};
}

}  // namespace lab::ladders

#else

namespace lab::ladders {
std::vector<Rung> cublas_peers() { return {}; }
}  // namespace lab::ladders

#endif
