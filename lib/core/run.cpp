#include "lab/core/run.hpp"

#include <algorithm>
#include <cstdio>
#include <cxxopts.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lab/core/cpu_name.hpp"
#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"

namespace lab {
struct Run::State {
  std::string model, device, json_file;
  std::vector<std::string> only;  // sections to print; empty: all
  bool self_test = false, muted = false, first = true, failed = false;
  nlohmann::ordered_json record;
};

Run::Run() : state_(std::make_unique<State>()) {}
Run::~Run() = default;

void Run::section(const std::string& name) {
  State& s = *state_;
  s.muted =
      !s.only.empty() && std::find(s.only.begin(), s.only.end(), name) == s.only.end();
  if (s.muted) return;
  const std::size_t rule = name.size() < 60 ? 60 - name.size() : 1;
  fmt::print("{}== {} {}\n", s.first ? "" : "\n", name, std::string(rule, '='));
  s.first = false;
}

void Run::write(const std::string& text) {
  if (state_->muted) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // a reader watches the numbers come in
}

void Run::metric(const std::string& key, double value, const std::string& unit) {
  state_->record["metrics"][key] = {{"value", value}, {"unit", unit}};
}

void Run::series(const std::string& key, const std::string& x_label,
                 const std::string& y_label, std::vector<double> x,
                 std::vector<Line> lines) {
  auto& entry = state_->record["series"][key];
  entry = {{"x_label", x_label}, {"y_label", y_label}, {"x", x}};
  for (const auto& [line, y] : lines) entry["lines"][line] = y;
}

void Run::check(bool holds, const std::string& what) {
  print("{}: {}\n", holds ? "ok" : "FAILED", what);
  if (holds) return;
  state_->failed = true;
  if (state_->muted) fmt::print(stderr, "FAILED: {}\n", what);  // never silently
}

const std::string& Run::model() const { return state_->model; }
const std::string& Run::device() const { return state_->device; }
bool Run::self_test() const { return state_->self_test || state_->device == "simt"; }

void Run::measured_on(std::string device) {
  if (state_->device != "cpu") print("device: {}\n", device);
  if (state_->device == "simt")
    print("Emulated for correctness: sizes are small, and times mean nothing.\n");
  state_->record["device"] = std::move(device);
}

int run_chapter(const std::string& chapter, const std::function<void(Run&)>& body, int argc,
                char** argv) {
  return guarded_main(chapter, [&] {
    cxxopts::Options options(chapter, "Chapter " + chapter + " of decodelab.");
    options.add_options()  //
        ("model", "target, draft, smollm2, or the path of a model",
         cxxopts::value<std::string>()->default_value("target"))  //
        ("device", "cpu, simt (the CUDA kernels, emulated) or cuda",
         cxxopts::value<std::string>()->default_value("cpu"))  //
        ("threads", "threads; 0: one per physical core",
         cxxopts::value<int>()->default_value("0"))  //
        ("section", "print only this section (may be repeated)",
         cxxopts::value<std::vector<std::string>>())  //
        ("json", "write the record of the run to this file",
         cxxopts::value<std::string>())                                 //
        ("self-test", "small sizes: checks only, numbers mean little")  //
        ("h,help", "print this help");
    Run run;
    Run::State& state = *run.state_;
    try {
      const auto given = options.parse(argc, argv);
      if (given.count("help")) {
        fmt::print("{}", options.help());
        return 0;
      }
      if (!given.unmatched().empty())
        throw UsageError(
            fmt::format("unexpected argument '{}'", given.unmatched().front()));
      state.model = given["model"].as<std::string>();
      state.device = given["device"].as<std::string>();
      state.self_test = given.count("self-test") > 0;
      if (given.count("section"))
        state.only = given["section"].as<std::vector<std::string>>();
      if (given.count("json")) state.json_file = given["json"].as<std::string>();
      if (const int threads = given["threads"].as<int>(); threads != 0)
        set_n_threads(threads);
    } catch (const cxxopts::exceptions::exception& e) {
      throw UsageError(e.what());
    }
    state.record = {{"schema", "decodelab-run/1"},
                    {"chapter", chapter},
                    {"model", state.model},
                    {"device", cpu_name()},
                    {"threads", n_threads()},
                    {"metrics", nlohmann::ordered_json::object()},
                    {"series", nlohmann::ordered_json::object()}};
    body(run);
    if (!state.json_file.empty()) {
      std::ofstream out(state.json_file);
      out << state.record.dump(2) << '\n';
      LAB_CHECK(out.good(), "cannot write '{}'; check that its folder exists",
                state.json_file);
    }
    return state.failed ? kExitFailure : 0;
  });
}

}  // namespace lab
