#include <fmt/format.h>

#include <algorithm>
#include <cxxopts.hpp>
#include <fstream>

#include "lab/core/error.hpp"
#include "ladders/benches.hpp"
#include "ladders/cublas.hpp"

namespace {

using namespace lab;
using namespace lab::ladders;

constexpr const char* kAbout =
    "Climbs the kernel ladders: runs every rung, compares it with the definition, and "
    "prints\n"
    "what its warps ask of the memory system (emulated) or how fast it is (on a GPU).\n"
    "Ladders: gemm, rms_norm, softmax, gemv, attention; all of them where none is named.\n"
    "Exit code 1 if a rung is wrong or, emulated, its traffic is not as predicted;\n"
    "2: the command line is wrong; 77: there is no GPU.\n";

cxxopts::Options options() {
  cxxopts::Options o("ladders", kAbout);
  o.positional_help("[LADDER ...]");
  auto add = o.add_options();
  // clang-format off
  add("device", "simt: the CUDA source on this CPU, every access counted; cuda: a GPU, timed",
      cxxopts::value<std::string>()->default_value("simt"));
  add("size", "T,N,K (rms_norm and softmax: T,1,K); default: a size that fits the device",
      cxxopts::value<std::vector<std::int64_t>>());
  add("json", "write JSON to this file, as docs/measurements/ladders.json; -: print it alone",
      cxxopts::value<std::string>());
  add("h,help", "print this");
  add("ladder", "", cxxopts::value<std::vector<std::string>>());
  // clang-format on
  o.parse_positional({"ladder"});
  return o;
}

#ifdef LAB_HAS_CUDA
Bench cuda_bench() {
  constexpr std::size_t kBytes = std::size_t{1} << 30;  // far more than any cache
  const std::string missing = cuda::gpu_missing();
  if (!missing.empty()) throw UnavailableError(missing);
  return {.gpu = kCuda,
          .time = cuda::median_seconds,
          .bandwidth = cuda::gpu_read_bandwidth(kBytes, nullptr),
          .peers = cublas_peers()};
}
std::vector<Ladder> cuda_ladders() { return cuda::all_ladders(); }
std::string cuda_name() { return cuda::gpu_name(); }
#else
Bench cuda_bench() {
  throw UnavailableError(
      "this build has no kernels for GPUs; configure with cmake --preset cuda");
}
std::vector<Ladder> cuda_ladders() { return {}; }
std::string cuda_name() { return ""; }
#endif

/// The named ladders, in the order of the list; all where none is named.
std::vector<Ladder> chosen(std::vector<Ladder> all, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::none_of(all.begin(), all.end(),
                     [&](const Ladder& l) { return l.name == name; }))
      throw UsageError(
          fmt::format("there is no ladder '{}'; there are gemm, rms_norm, softmax, "
                      "gemv and attention",
                      name));
  if (!names.empty())
    std::erase_if(all, [&](const Ladder& l) {
      return std::find(names.begin(), names.end(), l.name) == names.end();
    });
  return all;
}

Size size_of(const cxxopts::ParseResult& given, const Ladder& ladder, bool on_gpu) {
  if (given.count("size") == 0) return on_gpu ? ladder.timed : ladder.counted;
  const auto extents = given["size"].as<std::vector<std::int64_t>>();
  const bool rows =
      ladder.operation == Operation::rms_norm || ladder.operation == Operation::softmax;
  if (extents.size() != 3 || (rows && extents[1] != 1))
    throw UsageError(fmt::format("--size of {} needs T,{},K, as in --size {},{},{}",
                                 ladder.name, rows ? "1" : "N", ladder.counted.T,
                                 ladder.counted.N, ladder.counted.K));
  return {extents[0], extents[1], extents[2]};
}

bool good(const Record& record) {
  return std::all_of(record.rungs.begin(), record.rungs.end(), [&](const Result& r) {
    const bool predicted = !r.counted || !record.whole_tiles || *r.counted == r.predicted;
    return r.wrong.empty() && predicted;
  });
}

void write_json(const std::string& file, const nlohmann::ordered_json& content) {
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
  const auto device = given["device"].as<std::string>();
  if (device != "simt" && device != "cuda")
    throw UsageError(fmt::format("--device {} is neither simt nor cuda", device));
  const bool on_gpu = device == "cuda";
  const auto names = given.count("ladder") == 0
                         ? std::vector<std::string>{}
                         : given["ladder"].as<std::vector<std::string>>();
  const Bench bench = on_gpu ? cuda_bench() : Bench{.gpu = kSimt, .count = count_on_simt};
  const std::string json_file =
      given.count("json") == 0 ? "" : given["json"].as<std::string>();
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  bool all_good = true;
  for (const Ladder& ladder :
       chosen(on_gpu ? cuda_ladders() : simt::all_ladders(), names)) {
    const Record record = climb(bench, ladder, size_of(given, ladder, on_gpu));
    all_good = all_good && good(record);
    records.push_back(json(record));
    if (json_file != "-") fmt::print("{}\n", table(record));
  }
  if (!json_file.empty())
    write_json(json_file, {{"schema", "decodelab-ladders-1"},
                           {"device", on_gpu ? cuda_name() : "simt"},
                           {"ladders", records}});
  return all_good ? 0 : kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  return guarded_main("ladders", [&] {
    try {
      return run(argc, argv);
    } catch (const cxxopts::exceptions::exception& e) {
      throw UsageError(e.what());
    }
  });
}
