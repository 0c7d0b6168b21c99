#include "lab/model/config.hpp"

#include <cmath>
#include <numbers>
#include <string_view>

#include "lab/core/error.hpp"

namespace lab {
namespace {

// Ten times and more what any published model has; below what could overflow an int64.
constexpr std::int64_t kMaxLayers = 1 << 14, kMaxWidth = 1 << 24, kMaxHeads = 1 << 14,
                       kMaxHeadDim = 1 << 14, kMaxVocab = 1 << 28, kMaxContext = 1ll << 40;

void check_range(std::string_view field, std::int64_t value, std::int64_t max) {
  LAB_CHECK(value >= 1 && value <= max,
            "model configuration: {} is {}, expected 1 to {}; the file is damaged", field,
            value, max);
}

}  // namespace

void validate(const Config& c) {
  check_range("n_layers", c.n_layers, kMaxLayers);
  check_range("model_dim", c.model_dim, kMaxWidth);
  check_range("ffn_dim", c.ffn_dim, kMaxWidth);
  check_range("n_heads", c.n_heads, kMaxHeads);
  check_range("n_kv_heads", c.n_kv_heads, kMaxHeads);
  check_range("head_dim", c.head_dim, kMaxHeadDim);
  check_range("vocab_size", c.vocab_size, kMaxVocab);
  check_range("context_length", c.context_length, kMaxContext);
  LAB_CHECK(c.n_heads % c.n_kv_heads == 0,
            "model configuration: n_heads={} is not a multiple of n_kv_heads={}", c.n_heads,
            c.n_kv_heads);
  LAB_CHECK(c.head_dim % 2 == 0,
            "model configuration: head_dim={} is odd, but RoPE turns pairs of elements",
            c.head_dim);
  LAB_CHECK(c.rms_eps > 0 && c.rms_eps < 1,
            "model configuration: rms_eps is {}, expected a number between 0 and 1",
            c.rms_eps);
  LAB_CHECK(std::isfinite(c.rope.base) && c.rope.base > 0,
            "model configuration: the RoPE base is {}, expected a positive number",
            c.rope.base);
  const auto n_divisors = static_cast<std::int64_t>(c.rope.divisors.size());
  LAB_CHECK(n_divisors == 0 || n_divisors == c.head_dim / 2,
            "model configuration: {} RoPE divisors, expected head_dim/2 = {} or none",
            n_divisors, c.head_dim / 2);
  for (const float divisor : c.rope.divisors)
    LAB_CHECK(std::isfinite(divisor) && divisor > 0,
              "model configuration: a RoPE divisor is {}, expected a positive number",
              divisor);
}

std::vector<float> rope_inverse_frequencies(const Config& config) {
  const std::int64_t half = config.head_dim / 2;
  std::vector<float> frequencies(static_cast<std::size_t>(half));  // (Dh / 2)
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent =
        -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    frequencies[i] = static_cast<float>(std::pow(double(config.rope.base), exponent));
    if (!config.rope.divisors.empty()) frequencies[i] /= config.rope.divisors[i];
  }
  return frequencies;
}

std::vector<float> llama3_rope_divisors(const Llama3RopeScaling& s, double base,
                                        std::int64_t head_dim) {
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  LAB_CHECK(
      positive(s.factor) && positive(s.low_freq_factor) && positive(s.high_freq_factor) &&
          s.low_freq_factor < s.high_freq_factor && s.original_context > 0,
      "llama3 RoPE scaling: factor {}, low_freq_factor {}, high_freq_factor {}, original "
      "context {}: all must be positive, and low below high",
      s.factor, s.low_freq_factor, s.high_freq_factor, s.original_context);
  const auto context = static_cast<double>(s.original_context);
  std::vector<float> divisors(static_cast<std::size_t>(head_dim / 2));  // (Dh / 2)
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double frequency =
        std::pow(base, -2.0 * static_cast<double>(i) / double(head_dim));
    const double wavelength = 2 * std::numbers::pi / frequency;
    double divisor = 1;
    if (wavelength > context / s.low_freq_factor) {
      divisor = s.factor;
    } else if (wavelength >= context / s.high_freq_factor) {
      const double smooth = (context / wavelength - s.low_freq_factor) /
                            (s.high_freq_factor - s.low_freq_factor);
      divisor = 1 / ((1 - smooth) / s.factor + smooth);
    }
    divisors[i] = static_cast<float>(divisor);
  }
  return divisors;
}

std::vector<float> linear_rope_divisors(double factor, std::int64_t head_dim) {
  LAB_CHECK(std::isfinite(factor) && factor > 0,
            "linear RoPE scaling: factor is {}, expected a positive number", factor);
  return std::vector<float>(static_cast<std::size_t>(head_dim / 2),
                            static_cast<float>(factor));
}

}  // namespace lab
