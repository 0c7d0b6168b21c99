#include "simt/report.hpp"

#include <cstdio>
#include <mutex>
#include <string_view>

namespace emulator {
namespace {

constexpr int kMaxFindings = 20;

struct Reports {
  std::mutex mutex;
  std::string text;
  int findings = 0;
  cudaError_t last_error = cudaSuccess;
};
Reports& reports() {
  static Reports& r = *new Reports;  // used while the program ends
  return r;
}

}  // namespace

std::string last_report() {
  std::lock_guard lock(reports().mutex);
  return reports().text;
}

void clear_report() {
  std::lock_guard lock(reports().mutex);
  reports().text.clear();
  reports().findings = 0;
}

void add_report(const char* kind, const std::string& text, const void* kernel) {
  std::lock_guard lock(reports().mutex);
  Reports& r = reports();
  if (++r.findings > kMaxFindings) return;
  r.text += "SIMT ERROR: " + std::string(kind) + "\n  " + text + "\n";
  if (r.findings == 1 && kernel)
    if (const std::string name = function_name(kernel); !name.empty())
      r.text += "  in kernel " + name + "\n";
}

cudaError_t set_error(cudaError_t error) {
  std::lock_guard lock(reports().mutex);
  return reports().last_error = error;
}

cudaError_t refuse(cudaError_t error, const char* kind, const std::string& reason) {
  clear_report();
  add_report(kind, reason, nullptr);
  return set_error(error);
}

std::string place(const Location& loc) {
  const std::string_view file = loc.file;
  const std::size_t slash = file.rfind('/');
  return std::string(slash == file.npos ? file : file.substr(slash + 1)) + ":" +
         std::to_string(loc.line);
}

std::string hex(std::uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

}  // namespace emulator

using emulator::reports;

cudaError_t cudaGetLastError() {
  std::lock_guard lock(reports().mutex);
  return std::exchange(reports().last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  std::lock_guard lock(reports().mutex);
  return reports().last_error;
}

#define SIMT_ERRORS(X)                                                                     \
  X(cudaSuccess, "no error")                                                               \
  X(cudaErrorInvalidValue, "invalid argument")                                             \
  X(cudaErrorMemoryAllocation, "out of memory")                                            \
  X(cudaErrorInvalidConfiguration, "invalid configuration argument")                       \
  X(cudaErrorInvalidDevice, "invalid device ordinal")                                      \
  X(cudaErrorInvalidResourceHandle, "invalid resource handle")                             \
  X(cudaErrorNotReady, "device not ready")                                                 \
  X(cudaErrorLaunchFailure, "unspecified launch failure")                                  \
  X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing") \
  X(cudaErrorStreamCaptureInvalidated,                                                     \
    "operation failed due to a previous error during capture")

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define SIMT_CASE(NAME, TEXT) \
  case NAME:                  \
    return TEXT;
    SIMT_ERRORS(SIMT_CASE)
#undef SIMT_CASE
  }
  return "unrecognized error code";
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SIMT_CASE(NAME, TEXT) \
  case NAME:                  \
    return #NAME;
    SIMT_ERRORS(SIMT_CASE)
#undef SIMT_CASE
  }
  return "unrecognized error code";
}
