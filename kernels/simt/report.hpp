/// @file
/// Texts of failures: collecting them, and naming places and functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simt/host_api.hpp"
#include "simt/runtime.hpp"

namespace emulator {

/// Forgets the reports of earlier launches.
void clear_report();
/// Appends a finding to last_report(), the first of a launch with the kernel's name.
void add_report(const char* kind, const std::string& text, const void* kernel);
/// Notes that a call of the host API failed, for cudaGetLastError(). @return `error`
cudaError_t set_error(cudaError_t error);
/// The same with the reason as the report.
cudaError_t refuse(cudaError_t error, const char* kind, const std::string& reason);

/// "softmax.cu:41"
std::string place(const Location& loc);
/// "0x0000ffff"
std::string hex(std::uint32_t mask);

/// The source lines of machine code addresses, "softmax.cu:41": of functions inlined from
/// the emulator's headers, the line of the kernel that called them. "?" without debug
/// information.
std::vector<std::string> source_lines(const std::vector<const void*>& code);
/// The name of the function that starts at the address; empty if the program is stripped.
std::string function_name(const void* code);

/// A thread_local variable of the program.
struct TlsSymbol {
  std::string name;
  std::size_t offset = 0, bytes = 0;  ///< in the thread's copy of the TLS image
  bool shared = false;                ///< a static __shared__ array
};
const std::vector<TlsSymbol>& tls_symbols();
/// The calling thread's copy of the program's TLS image; null if the program is stripped.
char* tls_image();

}  // namespace emulator
