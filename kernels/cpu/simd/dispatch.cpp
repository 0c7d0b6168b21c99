#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#include <array>
#include <string>

#include "lab/core/error.hpp"
#include "lab/kernels/machine.hpp"
#include "table.hpp"

namespace lab::cpu {
namespace {

std::vector<const KernelTable*> usable_kernels() {
  std::vector<const KernelTable*> usable;
#ifdef __x86_64__
  // F16C needs no question of its own (clang 14 cannot ask): it is older than AVX2.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 =
      avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512 && __builtin_cpu_supports("avx512vnni"))
    usable.push_back(&avx512_vnni::kernels());
  if (avx512) usable.push_back(&avx512::kKernels);
  if (avx2) usable.push_back(&avx2::kKernels);
#elif defined(__aarch64__)
  if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) usable.push_back(&neon::kKernels);
#endif
  usable.push_back(&plain::kKernels);
  return usable;
}

const KernelTable*& in_use() {
  static const KernelTable* table = usable_kernels().front();
  return table;
}

}  // namespace

const KernelTable& kernels() { return *in_use(); }

const char* instruction_set() { return kernels().name; }

std::vector<const char*> instruction_sets() {
  std::vector<const char*> names;
  for (const KernelTable* table : usable_kernels()) names.push_back(table->name);
  return names;
}

void set_instruction_set(std::string_view name) {
  std::string known;
  for (const KernelTable* table : usable_kernels()) {
    if (table->name == name) {
      in_use() = table;
      return;
    }
    known += known.empty() ? table->name : std::string(", ") + table->name;
  }
  throw Error(
      fmt::format("instruction set '{}' asked for, but this CPU runs {}", name, known));
}

}  // namespace lab::cpu
