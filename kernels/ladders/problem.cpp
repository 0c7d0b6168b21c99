#include "ladders/problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/core/error.hpp"
#include "lab/core/rng.hpp"

namespace lab::ladders {
namespace {

constexpr std::int64_t kBand = 64;  // floats before and after y
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kLargest = 8;                                // units of an operand's element
constexpr std::int64_t kMostWork = std::int64_t(1) << 28;  // products of a check

bool nothing_but_nan(const float* p, std::int64_t n) {
  return std::all_of(p, p + n, [](float v) { return std::isnan(v); });
}

/// `x` may be y itself.
template <class X>
void softmax_row(std::vector<double>& y, const X* x) {
  const double max = double(*std::max_element(x, x + y.size()));
  double sum = 0;
  for (std::size_t k = 0; k < y.size(); ++k) sum += y[k] = std::exp(double(x[k]) - max);
  for (double& v : y) v /= sum;
}

}  // namespace

std::string unsupported(const Rung& r, Size s) {
  if (s.N % r.multiple_n != 0)
    return fmt::format("{} needs N to be a multiple of {}, and it is {}", r.file,
                       r.multiple_n, s.N);
  if (s.K % r.multiple_k != 0)
    return fmt::format("{} needs K to be a multiple of {}, and it is {}", r.file,
                       r.multiple_k, s.K);
  if (r.longest != 0 && s.K > r.longest)
    return fmt::format("{} keeps a row in registers and takes K up to {}, and it is {}",
                       r.file, r.longest, s.K);
  return "";
}

std::int64_t least_bytes(const Ladder& ladder, const Rung& rung, Size s) {
  const std::int64_t f32 = 4;
  switch (ladder.operation) {
    case Operation::multiply:
      return rung.bytes * (s.T * s.K + s.N * s.K) + f32 * s.T * s.N;
    case Operation::rms_norm:
      return f32 * (2 * s.T * s.K + s.K);
    case Operation::attention:
      return rung.bytes * (s.T + 2 * s.N) * s.K + f32 * s.T * s.K;
    case Operation::softmax:
      break;
  }
  return f32 * 2 * s.T * s.K;
}

void reference_row(Operation operation, std::vector<double>& y, const float* x,
                   const float* w, Size s) {
  if (operation == Operation::softmax) return softmax_row(y, x);
  if (operation == Operation::multiply) {
    for (std::int64_t n = 0; n < s.N; ++n) {
      y[std::size_t(n)] = 0;
      for (std::int64_t k = 0; k < s.K; ++k)
        y[std::size_t(n)] += double(x[k]) * double(w[n * s.K + k]);
    }
    return;
  }
  double squares = 0;
  for (std::int64_t k = 0; k < s.K; ++k) squares += double(x[k]) * double(x[k]);
  const double scale = 1 / std::sqrt(squares / double(s.K) + double(kEps));
  for (std::int64_t k = 0; k < s.K; ++k)
    y[std::size_t(k)] = double(x[k]) * scale * double(w[k]);
}

void reference_attention_row(std::vector<double>& y, const float* q, const float* k,
                             const float* v, std::int64_t n_seen) {
  const auto K = std::int64_t(y.size());
  std::vector<double> weights(std::size_t(n_seen), 0.0);
  for (std::int64_t n = 0; n < n_seen; ++n) {
    double dot = 0;
    for (std::int64_t d = 0; d < K; ++d) dot += double(q[d]) * double(k[n * K + d]);
    weights[std::size_t(n)] = dot / std::sqrt(double(K));
  }
  softmax_row(weights, weights.data());
  std::fill(y.begin(), y.end(), 0.0);
  for (std::int64_t n = 0; n < n_seen; ++n)
    for (std::int64_t d = 0; d < K; ++d)
      y[std::size_t(d)] += weights[std::size_t(n)] * double(v[n * K + d]);
}

template <class T>
T* Problem::upload(const std::vector<T>& host) {
  const std::size_t bytes = host.size() * sizeof(T);
  device_.push_back(gpu_.allocate(bytes, nullptr));
  gpu_.copy_to_device(device_.back(), host.data(), bytes, nullptr);
  gpu_.synchronize(nullptr);
  return reinterpret_cast<T*>(device_.back());
}

Problem::Problem(const Gpu& gpu, Operation operation, Size size,
                 const std::function<void(std::vector<float>&)>& change)
    : gpu_(gpu), operation_(operation), size_(size) {
  const auto [T, N, K] = size;
  LAB_CHECK(T >= 1 && N >= 1 && K >= 1,
            "a problem of T = {}, N = {}, K = {} was asked for; all must be at least 1", T,
            N, K);
  const bool attention = operation == Operation::attention;
  LAB_CHECK(!attention || N >= T,
            "attention of T = {} queries over N = {} positions was asked for; the queries "
            "are the last positions, so N must be at least T",
            T, N);
  Rng rng(1);
  x_.resize(std::size_t(T * K));
  w_.resize(std::size_t(N * K));
  row_ = operation == Operation::multiply ? N : K;
  const bool exact = operation == Operation::multiply;
  if (attention) v_.resize(w_.size());
  for (auto* values : {&x_, &w_, &v_})
    for (float& v : *values)
      v = exact ? kUnit * float(rng.below(2 * kLargest + 1) - kLargest)
                : float(rng.normal());
  if (attention) round_operands();
  if (change) change(x_);

  guarded_ = upload(std::vector<float>(std::size_t(T * row_ + 2 * kBand), kNan));
  operands_.y = {guarded_ + kBand, {T, row_}};
  operands_.x = {upload(x_), {T, K}};
  operands_.w = {upload(w_), {N, K}};
  if (!exact && !attention) return;
  const auto halves = [&](const std::vector<float>& v) {
    std::vector<Half> to(v.size());
    std::transform(v.begin(), v.end(), to.begin(), to_half);
    return upload(to);
  };
  operands_.x16 = {halves(x_), {T, K}};
  operands_.w16 = {halves(w_), {N, K}};
  if (attention) {
    operands_.v = {upload(v_), {N, K}};
    operands_.v16 = {halves(v_), {N, K}};
    operands_.scores = {upload(std::vector<float>(std::size_t(T * N), kNan)), {T, N}};
    return;
  }
  const auto units = [&](const std::vector<float>& v) {
    std::vector<std::int8_t> to(v.size());
    std::transform(v.begin(), v.end(), to.begin(),
                   [](float u) { return std::int8_t(u / kUnit); });
    return upload(to);
  };
  operands_.x8 = {units(x_), {T, K}};
  operands_.w8 = {units(w_), {N, K}};
}

void Problem::round_operands() {
  for (auto* values : {&x_, &w_, &v_})
    for (float& v : *values) v = to_float(to_half(v));
}

Problem::~Problem() {
  for (std::byte* p : device_) gpu_.release(p, nullptr);
}

void Problem::run(const Rung& rung) {
  const std::string problem = unsupported(rung, size_);
  LAB_CHECK(problem.empty(), "{}", problem);
  const std::vector<float> nan(std::size_t(operands_.y.size() + 2 * kBand), kNan);
  gpu_.copy_to_device(guarded_, nan.data(), nan.size() * sizeof(float), nullptr);
  gpu_.synchronize(nullptr);
  rung.run(operands_, nullptr);
  tolerance_ = operation_ == Operation::multiply ? 0 : rung.tolerance;
  gpu_.synchronize(nullptr);
}

std::string Problem::check_row(std::int64_t t, const std::vector<float>& y) const {
  std::vector<double> expected(std::size_t(row_), 0.0);
  const float* x = x_.data() + t * size_.K;
  const bool attention = operation_ == Operation::attention;
  if (attention)
    reference_attention_row(expected, x, w_.data(), v_.data(), size_.N - size_.T + t + 1);
  else
    reference_row(operation_, expected, x, w_.data(), size_);
  const double least = attention ? 1 : 1e-3;  // what errors are relative to
  for (std::int64_t i = 0; i < row_; ++i) {
    const double e = expected[std::size_t(i)];
    const double got = double(y[std::size_t(kBand + t * row_ + i)]);
    if (std::isnan(e) && std::isnan(got)) continue;
    if (!(std::abs(got - e) <= tolerance_ * std::max(std::abs(e), least)))
      return fmt::format("y[{}, {}] is {} and should be {}", t, i, got, e);
  }
  return "";
}

std::string Problem::check() {
  std::vector<float> y(std::size_t(operands_.y.size() + 2 * kBand));
  gpu_.copy_to_host(y.data(), guarded_, y.size() * sizeof(float), nullptr);
  gpu_.synchronize(nullptr);
  if (!nothing_but_nan(y.data(), kBand) ||
      !nothing_but_nan(y.data() + y.size() - kBand, kBand))
    return "it wrote outside y";
  const std::int64_t T = size_.T;
  const std::int64_t rows = std::clamp<std::int64_t>(kMostWork / (size_.N * size_.K),
                                                     std::min<std::int64_t>(T, 2), T);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::string wrong = check_row(rows == 1 ? 0 : i * (T - 1) / (rows - 1), y);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace lab::ladders
