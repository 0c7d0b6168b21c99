#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cxxopts.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kernels/machine.hpp"
#include "ladders/cpu/problem.hpp"

namespace lab::cpu_ladder {

/// One call of a rung: what valgrind counts (tools/kernels/callgrind.py).
[[gnu::noinline]] void counted_call(const Rung& rung, const Operands& operands) {
  rung.run(operands);
}

}  // namespace lab::cpu_ladder

namespace {

using namespace lab;
using namespace lab::cpu_ladder;
using Json = nlohmann::ordered_json;

constexpr const char* kAbout =
    "Climbs the CPU ladders: compares every rung with the definition and times it, on one\n"
    "thread. Ladders: gemv, gemm; both where none is named.\n"
    "Exit code 1: a rung is wrong; 2: the command line is; 77: --once and this CPU lacks\n"
    "the rung's instructions.\n";

cxxopts::Options options() {
  cxxopts::Options o("ladders_cpu", kAbout);
  o.positional_help("[LADDER ...]");
  auto add = o.add_options();
  // clang-format off
  add("format", "of the weights: Q4_0 or Q8_0", cxxopts::value<std::string>()->default_value("Q4_0"));
  add("size", "T,N,K; default: each ladder's own", cxxopts::value<std::vector<std::int64_t>>());
  add("rounds", "medians are of so many rounds; 0: do not time", cxxopts::value<int>()->default_value("15"));
  add("rung", "only this rung, counted from 1", cxxopts::value<int>());
  add("once", "one call of --rung on cold caches and nothing else, for valgrind");
  add("json", "write JSON to this file, as docs/measurements/ladders_cpu.json; -: print it alone",
      cxxopts::value<std::string>());
  add("h,help", "print this");
  add("ladder", "", cxxopts::value<std::vector<std::string>>());
  // clang-format on
  o.parse_positional({"ladder"});
  return o;
}

struct Request {
  DType dtype;
  Size size;  // T = 0: the ladder's own
  int rounds, rung;

  Size size_or(Size own) const { return size.T == 0 ? own : size; }
  bool wants(std::size_t i) const { return rung == 0 || int(i) + 1 == rung; }
};

DType format_of(const std::string& text) {
  for (const DType dtype : {DType::q4_0, DType::q8_0})
    if (name(dtype) == text) return dtype;
  throw UsageError(fmt::format("--format {} is neither Q4_0 nor Q8_0", text));
}

std::vector<Ladder> chosen(const cxxopts::ParseResult& given) {
  std::vector<Ladder> all = all_ladders();
  if (given.count("ladder") == 0) return all;
  std::vector<Ladder> out;
  for (const std::string& wanted : given["ladder"].as<std::vector<std::string>>()) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Ladder& l) { return l.name == wanted; });
    if (found == all.end())
      throw UsageError(
          fmt::format("there is no ladder '{}'; there are gemv and gemm", wanted));
    out.push_back(*found);
  }
  return out;
}

Request request_of(const cxxopts::ParseResult& given, const std::vector<Ladder>& ladders) {
  Request r{format_of(given["format"].as<std::string>()),
            {0, 0, 0},
            given["rounds"].as<int>(),
            0};
  if (r.rounds < 0) throw UsageError("--rounds must not be negative");
  if (given.count("size") != 0) {
    const auto extents = given["size"].as<std::vector<std::int64_t>>();
    if (extents.size() != 3 || extents[0] < 1)
      throw UsageError("--size needs T,N,K with T at least 1, as in --size 1,256,1024");
    r.size = {extents[0], extents[1], extents[2]};
  }
  if (given.count("rung") != 0) {
    r.rung = given["rung"].as<int>();
    for (const Ladder& l : ladders)
      if (r.rung < 1 || r.rung > int(l.rungs.size()))
        throw UsageError(fmt::format("{} has no rung {}; it has 1 to {}", l.name, r.rung,
                                     l.rungs.size()));
  }
  if (given.count("once") != 0 && (r.rung == 0 || ladders.size() != 1))
    throw UsageError("--once needs one ladder and one rung, as in gemv --rung 3 --once");
  return r;
}

/// One call on caches that hold none of the operands.
int run_once(const Ladder& ladder, const Request& request) {
  const Rung& rung = ladder.rungs[std::size_t(request.rung) - 1];
  if (const std::string why = skipped(rung); !why.empty()) throw UnavailableError(why);
  Problem problem(request.size_or(ladder.counted), request.dtype);
  use_instruction_set(rung);
  const Operands operands = problem.operands(rung);
  std::vector<char> others(1 << 22, 1);  // more than the cache that is simulated
  const int sum = std::accumulate(others.begin(), others.end(), 0);
  counted_call(rung, operands);
  fmt::print("{}\n", sum > 0 ? rung.name : "");
  return 0;
}

Json json(Cost cost) { return {{"bytes", cost.bytes}, {"multiplies", cost.multiplies}}; }
Json json(Size s) { return {{"T", s.T}, {"N", s.N}, {"K", s.K}}; }

/// Climbs one ladder, and prints it unless `quiet`.
Json climb(const Ladder& ladder, const Request& request, bool quiet, bool& all_good) {
  const Size size = request.size_or(ladder.timed),
             counted = request.size_or(ladder.counted);
  Problem problem(size, request.dtype, request.rounds > 0 ? ladder.streamed : 0);
  std::vector<Rung> rungs;
  for (std::size_t i = 0; i < ladder.rungs.size(); ++i)
    if (request.wants(i)) rungs.push_back(ladder.rungs[i]);
  std::vector<double> errors;
  for (const Rung& r : rungs) errors.push_back(skipped(r).empty() ? problem.error(r) : NAN);
  const auto seconds = median_seconds(problem, rungs, request.rounds);
  if (!quiet)
    fmt::print("{}  T = {}, N = {}, K = {}, {}\n{:20} {:>10} {:>10} {:>9} {:>9}\n",
               ladder.name, size.T, size.N, size.K, name(request.dtype), "", "error", "us",
               "GOP/s", "GB/s");
  Json out = Json::array();
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    const Rung& r = rungs[i];
    Json rung{
        {"name", r.name}, {"file", "kernels/ladders/cpu/" + r.file}, {"idea", r.idea}};
    rung["predicted"] = json(r.predict(counted, request.dtype));
    const double gops = 2e-9 * double(size.T * size.N * size.K) / seconds[i];
    const double gbs =
        1e-9 * double(weight_bytes(r.reads, size, request.dtype)) / seconds[i];
    const std::string why = skipped(r);
    const bool good = !why.empty() || errors[i] <= r.tolerance;
    all_good = all_good && good;
    if (!why.empty()) rung["skipped"] = why;
    if (!good) rung["wrong"] = errors[i];
    if (why.empty() && request.rounds > 0)
      rung["timed"] = {{"microseconds", seconds[i] * 1e6}, {"gop_s", gops}, {"gb_s", gbs}};
    out.push_back(rung);
    if (!quiet)
      fmt::print("{:20} {:10.1e} {:10.1f} {:9.2f} {:9.2f}  {}{}\n", r.name, errors[i],
                 seconds[i] * 1e6, gops, gbs, why, good ? "" : "WRONG");
  }
  return {{"name", ladder.name},           {"about", ladder.about},
          {"format", name(request.dtype)}, {"counted_size", json(counted)},
          {"timed_size", json(size)},      {"rungs", out}};
}

/// The processor's name as the system has it; empty where it does not say.
std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  return "";
}

std::string today() {
  const std::chrono::year_month_day day{
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return fmt::format("{:04}-{:02}-{:02}", int(day.year()), unsigned(day.month()),
                     unsigned(day.day()));
}

void write_json(const std::string& file, const Json& content) {
  const std::string text = content.dump(1) + "\n";
  if (file == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream out(file);
  out << text;
  out.close();
  LAB_CHECK(out, "{} cannot be written; --json needs a file in a folder that exists", file);
}

int run(int argc, char** argv) {
  cxxopts::Options o = options();
  const auto given = o.parse(argc, argv);
  if (given.count("help") != 0) {
    fmt::print("{}", o.help());
    return 0;
  }
  const std::vector<Ladder> ladders = chosen(given);
  const Request request = request_of(given, ladders);
  set_n_threads(1);
  if (given.count("once") != 0) return run_once(ladders.front(), request);
  const std::string file = given.count("json") == 0 ? "" : given["json"].as<std::string>();
  bool all_good = true;
  Json record{{"schema", "decodelab-ladders-cpu-1"},
              {"cpu", cpu_name()},
              {"date", today()},
              {"compiler", LAB_COMPILER},
              {"rounds", request.rounds}};
  if (request.rounds > 0 && !file.empty())
    record["bandwidth_gb_s"] = cpu::read_bandwidth() * 1e-9;
  record["ladders"] = Json::array();
  for (const Ladder& ladder : ladders)
    record["ladders"].push_back(climb(ladder, request, file == "-", all_good));
  if (!file.empty()) write_json(file, record);
  return all_good ? 0 : kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  return guarded_main("ladders_cpu", [&] {
    try {
      return run(argc, argv);
    } catch (const cxxopts::exceptions::exception& e) {
      throw UsageError(e.what());
    }
  });
}
