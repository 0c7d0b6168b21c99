#pragma once
#include <string>
#include <vector>
namespace emulator { struct TlsSymbol { std::string name; size_t offset, size; bool local; }; const std::vector<TlsSymbol>& tls_symbols(); char* tls_base(); }
