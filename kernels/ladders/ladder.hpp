/// @file
/// Kernel ladders: the same operation from its naive kernel to a fast one, one idea a rung.
/// Every rung of every ladder has one signature, states what its warps will ask of the
/// memory system before it runs, and is held to that by the emulator's counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/core/half.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::ladders {

/// The extents of a problem. gemm and gemv: y (T, N) = x (T, K) w (N, K)^T; rms_norm and
/// softmax: rows T of length K, and N = 1; attention: T queries, the last of N positions,
/// with head_dim K.
struct Size {
  std::int64_t T = 1, N = 1, K = 1;
};

/// What a rung computes from. x16, w16, x8 and w8 are the same numbers as x and w in fewer
/// bits, exactly: the numbers of gemm and gemv are small multiples of kUnit.
struct Operands {
  DeviceView<float, 2> y;               // (T, N), or (T, K): see Operation
  DeviceView<const float, 2> x;         // (T, K)
  DeviceView<const float, 2> w;         // (N, K)
  DeviceView<const Half, 2> x16;        // (T, K)
  DeviceView<const Half, 2> w16;        // (N, K)
  DeviceView<const std::int8_t, 2> x8;  // (T, K), in units of kUnit
  DeviceView<const std::int8_t, 2> w8;  // (N, K), in units of kUnit
  // Of attention alone: x is q, w is k; x16, w16 and v16 are the same numbers.
  DeviceView<const float, 2> v;   // (N, K)
  DeviceView<const Half, 2> v16;  // (N, K)
  DeviceView<float, 2> scores;    // (T, N): room for whoever writes them down
};
inline constexpr float kUnit = 0.125f;
inline constexpr float kEps = 1e-5f;  ///< of rms_norm

/// Loads or stores of one kind, summed over all warps.
struct Access {
  std::int64_t requests = 0;  ///< instructions that warps issue
  /// Global memory: sectors of 32 bytes that the requests touch. Shared memory: wavefronts,
  /// passes over the 32 banks; more than one for 128 bytes is a bank conflict.
  std::int64_t units = 0;
  bool operator==(const Access&) const = default;
};
inline constexpr std::int64_t kSectorBytes = 32;

/// What a kernel asks of the memory system.
struct Traffic {
  Access global_load = {}, global_store = {}, shared_load = {}, shared_store = {};
  bool operator==(const Traffic&) const = default;
};

/// One step of a ladder.
struct Rung {
  std::string name;       ///< "register tiles"
  std::string file = {};  ///< from kernels/ladders: "gemm/5_registers.cu"
  std::string idea = {};  ///< what is new here, and what it should change
  void (*run)(const Operands& o, Stream stream);
  /// For extents that are multiples of Ladder::tile.
  Traffic (*predict)(Size size) = nullptr;
  std::int64_t multiple_n = 1, multiple_k = 1;  ///< N and K must be multiples of these
  std::int64_t longest = 0;                     ///< the largest K; 0: any
  std::int64_t bytes = 4;  ///< of an element of x and w in the format that it reads
  /// Of a result, where sums are not exact: relative, see Problem::check.
  double tolerance = 1e-5;
};

/// What is computed: see Ladder::formula.
enum class Operation { multiply, rms_norm, softmax, attention };

/// An operation and its rungs.
struct Ladder {
  std::string name;  ///< "gemm"
  Operation operation;
  std::string formula;  ///< what y is
  std::string about;    ///< what the rungs are about
  Size counted;         ///< the size whose accesses are counted
  Size timed;           ///< the size that a GPU is timed with
  Size tile;            ///< predictions hold for multiples of these extents
  std::vector<Rung> rungs;
};

}  // namespace lab::ladders

// In both namespaces (all throw lab::Error with the runtime's words):
//   all_ladders       every ladder, with the functions of this GPU
//   median_seconds    of the runs of a rung, after warming up
LAB_GPU_VERSIONS(std::vector<ladders::Ladder> all_ladders();
                 double median_seconds(const ladders::Rung& rung,
                                       const ladders::Operands& o, Stream stream);)
