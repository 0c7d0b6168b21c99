#include "includes.hpp"

namespace lab::cpu::plain {
#include "plain.hpp"
//
#include "kernels.inc"

const KernelTable kKernels = make_table("plain");
}  // namespace lab::cpu::plain
