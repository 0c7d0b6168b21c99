/// @file
/// A problem for the rungs of a ladder: its operands on a GPU, real or emulated, and the
/// result that every rung must give.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ladders/ladder.hpp"

namespace lab::ladders {

/// The functions of lab/kernels/gpu.hpp of one GPU.
struct Gpu {
  std::byte* (*allocate)(std::size_t, Stream);
  void (*release)(std::byte*, Stream);
  void (*copy_to_device)(void*, const void*, std::size_t, Stream);
  void (*copy_to_host)(void*, const void*, std::size_t, Stream);
  void (*synchronize)(Stream);
};

/// @return what keeps the rung from this size, as a sentence; empty if nothing does
std::string unsupported(const Rung& rung, Size size);

/// @return the bytes that the rung's operation has to move: each operand once
std::int64_t least_bytes(const Ladder& ladder, const Rung& rung, Size size);

/// One row of y, by definition, in f64.
/// @param[out] y (N), or (K) where N = 1
/// @param[in]  x (K)
/// @param[in]  w (N, K)
void reference_row(Operation operation, std::vector<double>& y, const float* x,
                   const float* w, Size size);

/// One row of attention, by definition, in f64.
/// @param[out] y (K)
/// @param[in]  q (K)
/// @param[in]  k, v (N, K)
/// @param      n_seen  how many keys the row sees, from the first on
void reference_attention_row(std::vector<double>& y, const float* q, const float* k,
                             const float* v, std::int64_t n_seen);

class Problem {
 public:
  /// Fills the operands, the same way for the same size. Those of a multiplication are
  /// small multiples of kUnit: any order of sums in f32 gives the exact result. Those of
  /// attention are exact in f16.
  /// @param change  may alter x (T, K) before it goes to the GPU
  /// @throws Error if the extents are not at least 1, or N < T in attention
  Problem(const Gpu& gpu, Operation operation, Size size,
          const std::function<void(std::vector<float>&)>& change = {});
  ~Problem();
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  const Operands& operands() const { return operands_; }

  /// Runs the rung once, with y full of NaN before.
  /// @throws Error if the size is unsupported or the kernel fails
  void run(const Rung& rung);

  /// Compares what the last run left in y with the definition: all of it, or of a large
  /// problem some rows, first and last included. Multiplications must be exact, the rest
  /// within Rung::tolerance of the value; of attention, which mixes values of either sign,
  /// of 1 where that is larger.
  /// @return what is wrong, as a sentence; empty if nothing is
  std::string check();

 private:
  void round_operands();
  template <class T>
  T* upload(const std::vector<T>& host);
  std::string check_row(std::int64_t t, const std::vector<float>& y) const;

  Gpu gpu_;
  Operation operation_;
  Size size_;
  std::vector<float> x_, w_, v_;  // (T, K), (N, K); attention's (N, K)
  double tolerance_ = 0;          // of the last rung that ran
  std::int64_t row_;              // elements of a row of y
  std::vector<std::byte*> device_;
  float* guarded_ = nullptr;  // y between two bands that no rung may write
  Operands operands_;
};

}  // namespace lab::ladders
