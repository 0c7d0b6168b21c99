#include "ladders/cpu/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>

#include "lab/core/error.hpp"
#include "lab/core/half.hpp"
#include "lab/core/rng.hpp"
#include "lab/kernels/dequantize.hpp"
#include "lab/kernels/machine.hpp"

namespace lab::cpu_ladder {
namespace {

constexpr std::int64_t kMostCopies = 256;  // of small weights: a cache holds them anyway
constexpr double kRoundSeconds = 0.02;     // of a rung: long enough for the clock

std::vector<std::byte> random_blocks(Rng& rng, Size size, DType dtype) {
  std::vector<std::byte> blocks(std::size_t(size.N * row_bytes(dtype, size.K)));
  for (std::byte& b : blocks) b = std::byte(rng.below(256));
  const auto block_bytes = std::size_t(dtype_info(dtype).block_bytes);
  for (std::size_t i = 0; i < blocks.size(); i += block_bytes) {
    const Half scale = to_half(rng.uniform(0.01f, 0.1f));
    std::memcpy(blocks.data() + i, &scale, sizeof scale);
  }
  return blocks;
}

std::size_t copies(Form form, Size size, DType dtype, std::int64_t streamed) {
  const std::int64_t one = weight_bytes(form, size, dtype);
  return std::size_t(std::clamp<std::int64_t>((streamed + one - 1) / one, 1, kMostCopies));
}

/// Of this process's time, which other programs on the same cores do not lengthen.
double seconds_of(Problem& problem, const Rung& rung) {
  use_instruction_set(rung);
  const std::clock_t start = std::clock();
  double passed = 0;
  int calls = 0;
  for (; passed < kRoundSeconds; ++calls) {
    rung.run(problem.operands(rung));
    passed = double(std::clock() - start) / CLOCKS_PER_SEC;
  }
  return passed / calls;
}

}  // namespace

Problem::Problem(Size size, DType dtype, std::int64_t streamed)
    : size_(size), dtype_(dtype) {
  LAB_CHECK(size.T > 0 && size.N > 0 && size.K > 0 && size.K % 32 == 0,
            "a size of T = {}, N = {}, K = {} has no use; all must be positive and K a "
            "multiple of 32",
            size.T, size.N, size.K);
  LAB_CHECK(dtype == DType::q4_0 || dtype == DType::q8_0,
            "the CPU ladder has no rungs for {} weights; use Q4_0 or Q8_0", name(dtype));
  Rng rng(1);
  files_.assign(copies(Form::file, size, dtype, streamed), random_blocks(rng, size, dtype));
  const HostWeightView file{files_[0].data(), dtype, size.N, size.K};
  std::vector<float> decoded(std::size_t(size.N * size.K));
  cpu::dequantize({decoded.data(), {size.N * size.K}}, dtype, file.data);
  decoded_.assign(copies(Form::decoded, size, dtype, streamed), decoded);
  for (std::size_t i = copies(Form::packed, size, dtype, streamed); i > 0; --i)
    packed_.emplace_back(file);
  x_.resize(std::size_t(size.T * size.K));
  for (float& v : x_) v = float(rng.normal());
  y_.resize(std::size_t(size.T * size.N));
  reference_ = y_;
  cpu::reference::linear({reference_.data(), {size.T, size.N}},
                         {x_.data(), {size.T, size.K}}, file);
}

Operands Problem::operands(const Rung& rung) {
  const std::size_t i = next_++;
  const auto copy = [&](Form form, std::size_t n) {
    return rung.reads == form ? i % n : 0;
  };
  return {.y = {y_.data(), {size_.T, size_.N}},
          .x = {x_.data(), {size_.T, size_.K}},
          .w = {.file = {files_[copy(Form::file, files_.size())].data(), dtype_, size_.N,
                         size_.K},
                .decoded = decoded_[copy(Form::decoded, decoded_.size())].data(),
                .packed = &packed_[copy(Form::packed, packed_.size())]}};
}

double Problem::error(const Rung& rung) {
  std::fill(y_.begin(), y_.end(), NAN);
  use_instruction_set(rung);
  rung.run(operands(rung));
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < y_.size(); ++i) {
    difference += std::pow(double(y_[i]) - double(reference_[i]), 2);
    size += std::pow(double(reference_[i]), 2);
  }
  return std::sqrt(difference / size);
}

std::string skipped(const Rung& rung) {
  const auto sets = cpu::instruction_sets();
  const bool runs = rung.instruction_set.empty() ||
                    std::find(sets.begin(), sets.end(), rung.instruction_set) != sets.end();
  return runs ? "" : fmt::format("this CPU has no {}", rung.instruction_set);
}

void use_instruction_set(const Rung& rung) {
  cpu::set_instruction_set(rung.instruction_set.empty() ? cpu::instruction_sets().front()
                                                        : rung.instruction_set.c_str());
}

std::vector<double> median_seconds(Problem& problem, const std::vector<Rung>& rungs,
                                   int rounds) {
  std::vector<double> medians;
  std::vector<std::vector<double>> seconds(rungs.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < rungs.size(); ++i)
      if (skipped(rungs[i]).empty()) seconds[i].push_back(seconds_of(problem, rungs[i]));
  for (std::vector<double>& s : seconds) {
    std::sort(s.begin(), s.end());
    medians.push_back(s.empty() ? NAN : s[s.size() / 2]);
  }
  return medians;
}

}  // namespace lab::cpu_ladder
