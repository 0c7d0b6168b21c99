// conformance_simt and conformance_cuda: prints what the intrinsics return
// (conformance.cu). With a file's name it compares that file with what it would print.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "lab/core/error.hpp"
#include "lab/kernels/gpu.hpp"

LAB_GPU_VERSIONS(void print_conformance(std::FILE* out);)

namespace {

namespace gpu = lab::LAB_TEST_GPU;

/// @return the first line that differs, or 0
int first_difference(const std::string& a, const std::string& b) {
  if (a == b) return 0;
  int line = 1;
  for (std::size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i)
    line += a[i] == '\n';
  return line;
}

int body(int argc, char** argv) {
  if (const std::string missing = gpu::gpu_missing(); !missing.empty())
    throw lab::UnavailableError(missing);
  if (argc < 2) {
    gpu::print_conformance(stdout);
    return 0;
  }
  std::FILE* file = std::tmpfile();
  LAB_CHECK(file, "no temporary file can be made");
  gpu::print_conformance(file);
  std::rewind(file);
  std::string got;
  for (int c; (c = std::fgetc(file)) != EOF;) got += char(c);
  std::fclose(file);
  std::ifstream in(argv[1]);
  LAB_CHECK(in.good(), "{} cannot be read", argv[1]);
  const std::string want((std::istreambuf_iterator<char>(in)), {});
  const int line = first_difference(want, got);
  if (line == 0) return 0;
  std::fprintf(stderr, "%s differs from what the intrinsics return, first in line %d\n",
               argv[1], line);
  return lab::kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  return lab::guarded_main("conformance", [&] { return body(argc, argv); });
}
