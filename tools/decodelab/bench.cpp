// decodelab bench: tokens per second, and how near they come to this machine's limits.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.hpp"
#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "lab/model/model.hpp"
#include "options.hpp"

namespace lab::tools {
namespace {

struct Workload {
  std::int64_t prefill, decode, batch;
  int repeat;
};

struct Row {
  int threads;
  double prefill_tokens_per_s, decode_tokens_per_s, bandwidth_share, flop_share;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int> parse_threads(const std::string& text) {
  std::vector<int> out;
  std::stringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const bool number = !item.empty() && item.size() <= 4 &&
                        item.find_first_not_of("0123456789") == std::string::npos;
    const int n = number ? std::stoi(item) : -1;
    if (n < 0 || n > 1024)
      throw UsageError(fmt::format("--threads has '{}'; give numbers such as 1,2", item));
    out.push_back(n == 0 ? default_n_threads() : n);
  }
  if (out.empty()) throw UsageError("--threads is empty; give numbers such as 1,2");
  return out;
}

/// The best of `repeat` runs: what is left of the others is the machine's own noise. A
/// short run goes before them and does not count: it touches memory for the first time.
Row measure(Transformer& transformer, const Workload& w, int threads) {
  set_n_threads(threads);
  const auto cache = make_contiguous_cache(transformer, w.batch, w.prefill + w.decode);
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(w.prefill));
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<std::int32_t>((7 * i + 1) %
                                          std::size_t(transformer.config().vocab_size));
  double prefill_s = 1e30, decode_s = 1e30;
  ForwardCost prefill_cost, decode_cost;
  for (int r = -1; r < w.repeat; ++r) {
    const bool counts = r >= 0;
    for (std::int64_t b = 0; b < w.batch; ++b) cache->truncate(b, 0);
    auto start = Clock::now();
    prefill_cost = {};
    for (std::int64_t b = 0; b < w.batch; ++b) {
      ForwardBatch batch;
      batch.add(b, 0, prompt);
      transformer.forward(batch, *cache);
      prefill_cost.flops += transformer.cost(batch).flops;
    }
    if (counts) prefill_s = std::min(prefill_s, seconds_since(start));
    start = Clock::now();
    decode_cost = {};
    for (std::int64_t i = 0; i < (counts ? w.decode : 1); ++i) {
      ForwardBatch batch;
      for (std::int64_t b = 0; b < w.batch; ++b)
        batch.add(b, w.prefill + i, {prompt.data(), 1});
      transformer.forward(batch, *cache);
      const ForwardCost cost = transformer.cost(batch);
      decode_cost.weight_bytes += cost.weight_bytes;
      decode_cost.kv_bytes += cost.kv_bytes;
    }
    if (counts) decode_s = std::min(decode_s, seconds_since(start));
  }
  const double bytes = decode_cost.weight_bytes + decode_cost.kv_bytes;
  return {threads, double(w.prefill * w.batch) / prefill_s,
          double(w.decode * w.batch) / decode_s,
          bytes / decode_s / transformer.device().read_bandwidth(std::size_t{1} << 30),
          prefill_cost.flops / prefill_s / transformer.device().flop_peak()};
}

void print_row(const Row& r, std::int64_t batch, const LoadedModel& loaded, bool json) {
  if (json) {
    const nlohmann::ordered_json out{{"threads", r.threads},
                                     {"batch", batch},
                                     {"prefill_tokens_per_s", r.prefill_tokens_per_s},
                                     {"decode_tokens_per_s", r.decode_tokens_per_s},
                                     {"bandwidth_share", r.bandwidth_share},
                                     {"flop_share", r.flop_share},
                                     {"device", loaded.device->name()},
                                     {"activations", name(loaded.activations)}};
    fmt::print("{}\n", out.dump());
  } else {
    fmt::print("{:>7}{:>7}{:>18.1f}{:>18.1f}{:>17.0f}%{:>12.0f}%\n", r.threads, batch,
               r.prefill_tokens_per_s, r.decode_tokens_per_s, 100 * r.bandwidth_share,
               100 * r.flop_share);
  }
  std::fflush(stdout);
}

}  // namespace

int bench(int argc, char** argv) {
  cxxopts::Options options(
      "decodelab bench",
      "Measures prefill and decode, one row per thread count. bandwidth_share: bytes of "
      "weights "
      "and KV cache that decoding read per second, as a share of the read bandwidth "
      "measured "
      "just now; above 1 if the weights stay in the CPU's caches. flop_share: the "
      "floating-point operations of prefill, as a share of the peak measured just now.");
  options.add_options()  //
      ("model", "target, draft, smollm2, or the path of a model",
       cxxopts::value<std::string>()->default_value("target"))                            //
      ("prefill", "prompt tokens", cxxopts::value<std::int64_t>()->default_value("512"))  //
      ("decode", "tokens to decode",
       cxxopts::value<std::int64_t>()->default_value("64"))  //
      ("batch", "sequences at a time",
       cxxopts::value<std::int64_t>()->default_value("1"))  //
      ("threads", "thread counts, one row each; 0: one per physical core",
       cxxopts::value<std::string>()->default_value("1,2"))                           //
      ("repeat", "runs; the best counts", cxxopts::value<int>()->default_value("3"))  //
      ("json",
       "one JSON object a line: {threads, batch, prefill_tokens_per_s, "
       "decode_tokens_per_s, bandwidth_share, flop_share, device, activations}")  //
      ("h,help", "print this help");
  add_device_options(options, "auto");
  const auto given = parse(options, argc, argv);
  if (!given) return 0;
  const Workload w{(*given)["prefill"].as<std::int64_t>(),
                   (*given)["decode"].as<std::int64_t>(),
                   (*given)["batch"].as<std::int64_t>(), (*given)["repeat"].as<int>()};
  if (w.prefill < 1 || w.decode < 1 || w.batch < 1 || w.repeat < 1)
    throw UsageError("--prefill, --decode, --batch and --repeat must be at least 1");
  const auto threads = parse_threads((*given)["threads"].as<std::string>());
  const LoadedModel loaded = load(*given);
  const auto& model = loaded.model;
  LAB_CHECK(
      w.prefill <= model->config().context_length - w.decode,
      "--prefill {} and --decode {} do not fit the model's context of {} positions; ask "
      "for fewer",
      w.prefill, w.decode, model->config().context_length);
  const bool json = given->count("json") > 0;
  if (!json)
    fmt::print("{}; {} activations\n{:>7}{:>7}{:>18}{:>18}{:>18}{:>13}\n",
               loaded.device->description(), name(loaded.activations), "threads", "batch",
               "prefill, tok/s", "decode, tok/s", "of bandwidth", "of peak");
  for (const int n : threads)
    print_row(measure(model->transformer(), w, n), w.batch, loaded, json);
  if (!json)
    fmt::print(
        "of bandwidth: bytes read while decoding; above 100 % where a small model stays "
        "in the caches\nof peak: floating-point operations of prefill\n");
  return 0;
}

}  // namespace lab::tools
