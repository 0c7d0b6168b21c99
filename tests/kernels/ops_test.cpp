#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  INFO(path.string());
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The text of all files of a folder with this extension.
std::string texts_of(const std::filesystem::path& folder, const std::string& extension) {
  std::string all;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == extension) all += text_of(file.path());
  return all;
}

struct Op {
  std::string name;
  int chapter;
};
const Op kOps[] = {
#define LAB_OP(name, chapter) {#name, chapter},
#include "lab/kernels/ops.def"
#undef LAB_OP
};

}  // namespace

TEST_CASE(
    "every operation has a header with a reference, a check, a definition and a test") {
  const std::filesystem::path root = std::filesystem::path(LAB_MODELS).parent_path();
  const std::string checks = text_of(root / "kernels/include/lab/kernels/check.hpp");
  for (const auto& [name, chapter] : kOps) {
    INFO(name);
    const std::string header =
        text_of(root / "kernels/include/lab/kernels" / (name + ".hpp"));
    const std::string source = text_of(root / "kernels/cpu" / (name + ".cpp"));
    CHECK_THAT(header, ContainsSubstring(" " + name + "(HostView"));
    CHECK_THAT(header, ContainsSubstring("namespace reference"));
    CHECK_THAT(source, ContainsSubstring("reference::" + name));
    CHECK_THAT(source, ContainsSubstring("check_" + name));
    CHECK_THAT(checks, ContainsSubstring("check_" + name + "("));
    CHECK_THAT(text_of(root / "tests/kernels" / (name + "_test.cpp")),
               ContainsSubstring("TEST_CASE"));
    CHECK((chapter >= 1 && chapter <= 11));
  }
}

TEST_CASE("every operation has a GPU version, and a row in the table of parity tests") {
  const std::filesystem::path root = std::filesystem::path(LAB_MODELS).parent_path();
  const std::string kernels = texts_of(root / "kernels/cuda", ".cu");
  const std::string rows = texts_of(root / "tests/parity", ".cpp");
  for (const auto& [name, chapter] : kOps) {
    INFO(name);
    const std::string header =
        text_of(root / "kernels/include/lab/kernels" / (name + ".hpp"));
    CHECK_THAT(header, ContainsSubstring("LAB_GPU_VERSIONS("));
    CHECK_THAT(text_of(root / "kernels/cuda" / (name + ".cu")),
               ContainsSubstring("lab/kernels/" + name + ".hpp"));
    CHECK_THAT(kernels, ContainsSubstring("check_" + name + "("));
    CHECK_THAT(rows, ContainsSubstring("LAB_PARITY(" + name + ", "));
  }
}

TEST_CASE("every kernel header is an operation of the table") {
  const std::filesystem::path root = std::filesystem::path(LAB_MODELS).parent_path();
  for (const auto& file :
       std::filesystem::directory_iterator(root / "kernels/include/lab/kernels")) {
    const std::string stem = file.path().stem().string();
    if (file.path().extension() != ".hpp" || stem == "check" || stem == "machine" ||
        stem == "gpu")
      continue;
    INFO(stem);
    CHECK(std::any_of(std::begin(kOps), std::end(kOps),
                      [&](const Op& op) { return op.name == stem; }));
  }
}
