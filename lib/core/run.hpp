/// @file
/// The reporter every chapter uses: prints for people, records for tools.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lab {

/// One run of a chapter program.
///
/// What it prints is divided into named *sections*; the chapter's page shows each section
/// under the code that printed it. Numbers that prose or a plot needs are recorded with
/// metric() and series(), so that no number in the text is typed by hand. Every claim that
/// can fail is a check(), and decides the exit code.
class Run {
 public:
  /// One line of a plot: a name and a value for each x.
  using Line = std::pair<std::string, std::vector<double>>;

  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  /// Starts the section `name`: what is printed from here on belongs to it.
  void section(const std::string& name);

  /// Prints in the current section; format as in fmt::print.
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    write(fmt::format(format, std::forward<Args>(args)...));
  }

  /// Records one number under `key`. Prose refers to it as `{{key}}`.
  /// @param unit  SI or empty: "ms", "tokens/s", "GB/s"
  void metric(const std::string& key, double value, const std::string& unit = "");

  /// Records a family of lines over a common x axis; `@plot key` draws it. Labels carry
  /// units.
  void series(const std::string& key, const std::string& x_label,
              const std::string& y_label, std::vector<double> x, std::vector<Line> lines);

  /// Prints "ok: ..." or "FAILED: ...", and makes the program exit with 1 if it failed.
  void check(bool holds, const std::string& what);

  // ----- options that every chapter has
  const std::string& model() const;   ///< --model, default "target"
  const std::string& device() const;  ///< --device, default "cpu"
  /// Small sizes: --self-test, for the test suite, or --device simt, where times mean
  /// nothing.
  bool self_test() const;

  /// Records what the numbers were measured on; the CPU's name unless called. If it is not
  /// the CPU itself, it is printed too.
  void measured_on(std::string device);

 private:
  friend int run_chapter(const std::string&, const std::function<void(Run&)>&, int, char**);
  Run();
  void write(const std::string& text);
  struct State;
  std::unique_ptr<State> state_;
};

/// The main function of a chapter: reads the options (--help lists them), runs `body`,
/// writes the record, and returns the exit code (0; 1 a check or the run failed; 2 usage;
/// 77 needs hardware that is not here).
/// @param chapter  the chapter's folder name, e.g. "02_kv_cache"
int run_chapter(const std::string& chapter, const std::function<void(Run&)>& body, int argc,
                char** argv);

}  // namespace lab
