/// @file
/// What the kernel tests share: random tensors, guard bands, comparison, instruction sets.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "lab/core/dtype.hpp"
#include "lab/core/error.hpp"
#include "lab/core/half.hpp"
#include "lab/core/parallel.hpp"
#include "lab/core/rng.hpp"
#include "lab/core/view.hpp"
#include "lab/kernels/machine.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"

namespace lab::test {

/// Elements between two bands of a pattern that no kernel may touch.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::int64_t n) : n_(n), all_(std::size_t(n + 2 * kBand)) {
    std::memset(all_.data(), kPattern, all_.size() * sizeof(T));
  }
  T* data() { return all_.data() + kBand; }
  T& operator[](std::int64_t i) { return data()[i]; }
  std::int64_t size() const { return n_; }
  template <std::size_t N>
  HostView<T, int(N)> view(const std::int64_t (&shape)[N]) {
    HostView<T, int(N)> v{data(), {}};
    for (std::size_t i = 0; i < N; ++i) v.shape[i] = shape[i];
    return v;
  }
  bool intact() const {
    std::vector<T> band(kBand);
    std::memset(band.data(), kPattern, kBand * sizeof(T));
    return std::memcmp(band.data(), all_.data(), kBand * sizeof(T)) == 0 &&
           std::memcmp(band.data(), all_.data() + kBand + n_, kBand * sizeof(T)) == 0;
  }

 private:
  static constexpr int kBand = 64, kPattern = 0xa5;
  std::int64_t n_;
  std::vector<T> all_;
};

inline std::vector<float> random_floats(Rng& rng, std::int64_t n, float scale = 1) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = scale * float(rng.normal());
  return v;
}

template <std::size_t N>
HostView<const float, int(N)> view_of(const std::vector<float>& v,
                                      const std::int64_t (&shape)[N]) {
  HostView<const float, int(N)> r{v.data(), {}};
  for (std::size_t i = 0; i < N; ++i) r.shape[i] = shape[i];
  return r;
}

/// Gives every block of `bytes` finite scales of ordinary size (to floats: a value).
inline void put_random_scales(Rng& rng, DType dtype, std::vector<std::byte>& bytes) {
  const std::int64_t block = dtype_info(dtype).block_bytes;
  const auto put = [&](std::int64_t at, auto v) {
    std::memcpy(&bytes[std::size_t(at)], &v, sizeof v);
  };
  const auto small = [&] { return to_half(0.05f * float(rng.normal())); };
  for (std::int64_t at = 0; at < std::int64_t(bytes.size()); at += block) switch (dtype) {
      case DType::f32:
        put(at, float(rng.normal()));
        break;
      case DType::f16:
        put(at, to_half(float(rng.normal())));
        break;
      case DType::bf16:
        put(at, to_bfloat16(float(rng.normal())));
        break;
      case DType::q4_1:
      case DType::q5_1:
      case DType::q4_k:
      case DType::q5_k:
        put(at, small()), put(at + 2, small());
        break;
      case DType::q2_k:
        put(at + 80, small()), put(at + 82, small());
        break;
      case DType::q3_k:
        put(at + 108, small());
        break;
      case DType::q6_k:
        put(at + 208, small());
        break;
      default:
        put(at, small());
    }
}

/// A random weight matrix in the file's bytes. Scales are finite and of ordinary size.
inline std::vector<std::byte> random_weights(Rng& rng, DType dtype, std::int64_t rows,
                                             std::int64_t cols) {
  std::vector<std::byte> bytes(std::size_t(rows * row_bytes(dtype, cols)));
  for (std::byte& b : bytes) b = std::byte(rng.bits() & 255);
  put_random_scales(rng, dtype, bytes);
  return bytes;
}

/// Empty if every |a - b| <= absolute + relative * |b|; else the worst place and its
/// values. NaN matches NaN, an infinity the same infinity.
inline std::string mismatch(const float* a, const float* b, std::int64_t n, double absolute,
                            double relative) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::isnan(b[i]) && std::isnan(a[i])) continue;
    if (a[i] == b[i]) continue;
    const double error = std::abs(double(a[i]) - double(b[i]));
    const double allowed = absolute + relative * std::abs(double(b[i]));
    if (std::isinf(b[i]) || !(error <= allowed))
      return fmt::format("[{}] of {}: {} instead of {} (error {})", i, n, a[i], b[i],
                         error);
  }
  return "";
}

/// Runs `body` with each instruction set of this CPU, then goes back to the best.
inline void each_instruction_set(const std::function<void()>& body) {
  for (const char* name : cpu::instruction_sets()) {
    INFO("instruction set " << name);
    cpu::set_instruction_set(name);
    body();
  }
  cpu::set_instruction_set(cpu::instruction_sets().front());
}

}  // namespace lab::test
