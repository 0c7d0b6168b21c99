// Names and places in the running program: its ELF symbol table and its debug information.
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include "simt/report.hpp"
#include "simt/worker.hpp"

namespace emulator {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = text ? text : name;
  std::free(text);
  return result;
}

std::uintptr_t load_address() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  return base;
}

struct Symbols {
  std::vector<TlsSymbol> tls;
  std::map<std::uintptr_t, std::string> functions;  // mangled, by link-time address
};

/// A function-local thread_local without a guard in the zero-initialised image: what
/// `__shared__ float tile[32];` in a kernel becomes.
bool is_shared_array(std::string_view name, const Elf64_Shdr& section,
                     const std::set<std::string_view>& names) {
  const std::string guard =
      "_ZGV" + std::string(name.substr(std::min<std::size_t>(2, name.size())));
  return name.starts_with("_ZZ") && section.sh_type == SHT_NOBITS && !names.count(guard) &&
         !name.starts_with("_ZZNSt") && !name.starts_with("_ZZNKSt") &&
         !name.starts_with("_ZZN8emulator") &&
         !name.starts_with("_ZZN12_GLOBAL__N_18emulator");
}

void read_table(const char* file, const Elf64_Shdr* sections, const Elf64_Shdr& table,
                Symbols& out) {
  const auto* symbols = reinterpret_cast<const Elf64_Sym*>(file + table.sh_offset);
  const char* strings = file + sections[table.sh_link].sh_offset;
  const std::size_t n = table.sh_size / sizeof(Elf64_Sym);
  std::set<std::string_view> tls_names;
  for (std::size_t i = 0; i < n; ++i)
    if (ELF64_ST_TYPE(symbols[i].st_info) == STT_TLS)
      tls_names.insert(strings + symbols[i].st_name);
  for (std::size_t i = 0; i < n; ++i) {
    const Elf64_Sym& s = symbols[i];
    const char* name = strings + s.st_name;
    if (s.st_shndx == SHN_UNDEF || s.st_shndx >= SHN_LORESERVE) continue;
    if (ELF64_ST_TYPE(s.st_info) == STT_FUNC) out.functions.emplace(s.st_value, name);
    if (ELF64_ST_TYPE(s.st_info) == STT_TLS && s.st_size > 0)
      out.tls.push_back({demangled(name), s.st_value, s.st_size,
                         is_shared_array(name, sections[s.st_shndx], tls_names)});
  }
}

Symbols read_symbols() {
  Symbols result;
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) return result;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return result;
  const char* file = static_cast<const char*>(p);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i)
    if (sections[i].sh_type == SHT_SYMTAB) read_table(file, sections, sections[i], result);
  munmap(p, size);
  return result;
}

const Symbols& symbols() {
  static const Symbols& s = *new Symbols(read_symbols());
  return s;
}

bool is_emulator_header(std::string_view path) {
  return path.find("/simt/") != path.npos && path.find(".hpp:") != path.npos;
}

/// "/a/b/softmax.cu:41 (discriminator 2)" -> "softmax.cu:41"
std::string file_and_line(std::string_view text) {
  text = text.substr(0, text.find_first_of("\n ("));
  const std::size_t slash = text.rfind('/');
  return std::string(slash == text.npos ? text : text.substr(slash + 1));
}

/// Asks addr2line about all addresses at once; the frames of one follow its address.
std::vector<std::string> ask_addr2line(const std::vector<const void*>& code) {
  // Not getpid(): in a process namespace of its own, /proc may be the one outside.
  char self[32] = {};
  std::vector<std::string> lines(code.size(), "an unknown line (compile with -g1)");
  if (readlink("/proc/self", self, sizeof self - 1) < 0) return lines;
  std::string command = std::string("addr2line -a -i -e /proc/") + self + "/exe";
  const std::uintptr_t base = load_address();
  for (const void* pc : code) {
    char address[32];
    // A return address is behind the call, and may belong to the next line.
    std::snprintf(address, sizeof address, " 0x%zx",
                  reinterpret_cast<std::uintptr_t>(pc) - 1 - base);
    command += address;
  }
  FILE* out = popen((command + " 2>/dev/null").c_str(), "r");
  if (!out) return lines;
  char text[4096];
  std::size_t i = 0;  // 1 + index of the address whose frames are being read
  bool found = false;
  while (std::fgets(text, sizeof text, out)) {
    if (std::string_view(text).starts_with("0x")) {
      ++i;
      found = false;
    } else if (i >= 1 && i <= lines.size() && !found && *text != '?' &&
               !std::strstr(text, ":?")) {
      lines[i - 1] = file_and_line(text);
      found = !is_emulator_header(text);
    }
  }
  pclose(out);
  return lines;
}

}  // namespace

std::vector<std::string> source_lines(const std::vector<const void*>& code) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<const void*, std::string>;
  std::lock_guard lock(mutex);
  std::vector<const void*> unknown;
  for (const void* pc : code)
    if (!known.count(pc)) unknown.push_back(pc);
  constexpr std::size_t kBatch = 500;  // a command line has a length limit
  for (std::size_t begin = 0; begin < unknown.size(); begin += kBatch) {
    const std::size_t end = std::min(begin + kBatch, unknown.size());
    const std::vector<const void*> batch(unknown.begin() + std::ptrdiff_t(begin),
                                         unknown.begin() + std::ptrdiff_t(end));
    const std::vector<std::string> lines = ask_addr2line(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) known[batch[i]] = lines[i];
  }
  std::vector<std::string> result;
  for (const void* pc : code) result.push_back(known[pc]);
  return result;
}

std::string function_name(const void* code) {
  const auto& functions = symbols().functions;
  const auto it = functions.find(reinterpret_cast<std::uintptr_t>(code) - load_address());
  return it == functions.end() ? "" : demangled(it->second.c_str());
}

const std::vector<TlsSymbol>& tls_symbols() { return symbols().tls; }

char* tls_image() {
  static const std::size_t offset = [] {
    for (const TlsSymbol& s : tls_symbols())
      if (s.name == "threadIdx") return s.offset;
    return ~std::size_t(0);
  }();
  return ~offset ? reinterpret_cast<char*>(&threadIdx) - offset : nullptr;
}

const std::vector<SharedRange>& static_shared_arrays() {
  thread_local const std::vector<SharedRange> ranges = [] {
    std::vector<SharedRange> result;
    if (char* image = tls_image())
      for (const TlsSymbol& s : tls_symbols())
        if (s.shared)
          result.push_back({reinterpret_cast<unsigned char*>(image) + s.offset, s.bytes});
    return result;
  }();
  return ranges;
}

}  // namespace emulator
