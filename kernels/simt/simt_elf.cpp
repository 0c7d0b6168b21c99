// Finds the static __shared__ arrays: block-scope thread_locals are TLS symbols whose mangled name starts with _ZZ
// (entity local to a function). Their address in the current thread follows from one known TLS variable.
#include "simt_internal.hpp"
#include "simt_elf.hpp"
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
namespace emulator {
const std::vector<TlsSymbol>& tls_symbols() {
    static const auto& syms = *new std::vector<TlsSymbol>([] {
        std::vector<TlsSymbol> out; int fd = open("/proc/self/exe", O_RDONLY); struct stat st{};
        if (fd < 0 || fstat(fd, &st)) return out;
        auto* m = (const char*)mmap(nullptr, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0); close(fd);
        auto* eh = (const Elf64_Ehdr*)m; auto* sh = (const Elf64_Shdr*)(m + eh->e_shoff);
        for (int i = 0; i < eh->e_shnum; ++i) if (sh[i].sh_type == SHT_SYMTAB) {
            auto* s = (const Elf64_Sym*)(m + sh[i].sh_offset); const char* str = m + sh[sh[i].sh_link].sh_offset;
            for (size_t k = 0; k < sh[i].sh_size / sizeof *s; ++k) if (ELF64_ST_TYPE(s[k].st_info) == STT_TLS && s[k].st_shndx != SHN_UNDEF) {
                const char* n = str + s[k].st_name; int rc = 0; char* d = abi::__cxa_demangle(n, nullptr, nullptr, &rc);
                out.push_back({d ? d : n, s[k].st_value, s[k].st_size, std::string_view(n).starts_with("_ZZ")}); std::free(d);
            }
        }
        munmap((void*)m, (size_t)st.st_size); return out;
    }());
    return syms;
}
char* tls_base() {                             // this thread's copy of the executable's TLS image
    for (auto& s : tls_symbols()) if (s.name == "threadIdx") return (char*)&threadIdx - s.offset;
    return nullptr;
}
std::vector<std::pair<void*, size_t>> static_shared() {
    static thread_local std::vector<std::pair<void*, size_t>> v = [] { std::vector<std::pair<void*, size_t>> r; if (char* b = tls_base()) for (auto& s : tls_symbols()) if (s.local && s.name.find("static_shared") == std::string::npos) r.push_back({b + s.offset, s.size}); return r; }();
    return v;
}
}
