#include "lab/batching/workload.hpp"

#include <algorithm>
#include <cmath>

#include "lab/core/error.hpp"
#include "lab/core/rng.hpp"

namespace lab {
namespace {

double exponential(Rng& rng, double mean) { return -mean * std::log(1 - rng.uniform()); }

/// Gamma with scale 1 (Marsaglia and Tsang 2000, "A simple method for generating gamma
/// variables"; shapes below 1 as in its section 6).
double gamma(Rng& rng, double shape) {
  if (shape < 1) return gamma(rng, shape + 1) * std::pow(1 - rng.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - rng.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
      return d * v;
  }
}

std::int64_t length(Rng& rng, const LengthDistribution& d) {
  const double x = d.median * std::exp(d.sigma * rng.normal());
  return static_cast<std::int64_t>(
      std::clamp(std::round(x), static_cast<double>(d.least), static_cast<double>(d.most)));
}

std::vector<double> arrival_times(const WorkloadConfig& c, Rng& rng) {
  std::vector<double> times(static_cast<std::size_t>(c.n_requests), 0);
  double t = 0, on_left = 0;
  if (c.arrivals == Arrivals::on_off) on_left = exponential(rng, c.on_s);
  for (double& time : times) {
    if (c.arrivals == Arrivals::gamma) {
      t += gamma(rng, c.burstiness) / (c.burstiness * c.rate);
    } else if (c.arrivals == Arrivals::on_off) {
      double gap = exponential(rng, c.on_s / (c.on_s + c.off_s) / c.rate);  // of "on" time
      for (; gap > on_left; on_left = exponential(rng, c.on_s)) {
        gap -= on_left;
        t += on_left + exponential(rng, c.off_s);
      }
      on_left -= gap;
      t += gap;
    }
    time = t;
  }
  return times;
}

void check_length(const char* what, const LengthDistribution& d) {
  LAB_CHECK(d.median > 0 && std::isfinite(d.median),
            "workload: the median {} length is {}; give a number above 0", what, d.median);
  LAB_CHECK(d.sigma >= 0 && std::isfinite(d.sigma),
            "workload: sigma of the {} length is {}; give a number >= 0", what, d.sigma);
  LAB_CHECK(d.least >= 1 && d.most >= d.least,
            "workload: {} lengths from {} to {}; give 1 <= least <= most", what, d.least,
            d.most);
}

}  // namespace

void WorkloadConfig::validate() const {
  LAB_CHECK(n_requests >= 0, "workload: {} requests; give a number >= 0", n_requests);
  LAB_CHECK(rate > 0 && std::isfinite(rate),
            "workload: a rate of {} requests/s; give a number above 0", rate);
  LAB_CHECK(burstiness > 0 && std::isfinite(burstiness),
            "workload: burstiness is {}; give a number above 0 (1 is Poisson)", burstiness);
  LAB_CHECK(on_s > 0 && std::isfinite(on_s) && off_s > 0 && std::isfinite(off_s),
            "workload: on for {} s and off for {} s; give numbers above 0", on_s, off_s);
  LAB_CHECK(vocab_size >= 1, "workload: a vocabulary of {}; give a number >= 1",
            vocab_size);
  check_length("prompt", prompt);
  check_length("output", output);
}

std::vector<Request> make_workload(const WorkloadConfig& config) {
  config.validate();
  const std::uint64_t seed = config.seed * 3;
  Rng times_rng(seed), lengths_rng(seed + 1), tokens_rng(seed + 2);
  std::vector<Request> requests;
  for (const double t : arrival_times(config, times_rng)) {
    Request r;
    r.id = std::ssize(requests);
    r.prompt.resize(static_cast<std::size_t>(length(lengths_rng, config.prompt)));
    for (std::int32_t& id : r.prompt)
      id = static_cast<std::int32_t>(tokens_rng.below(config.vocab_size));
    r.max_tokens = length(lengths_rng, config.output);
    r.ignore_end = true;
    r.slo = config.slo;
    r.arrival_s = t;
    requests.push_back(std::move(r));
  }
  return requests;
}

}  // namespace lab
