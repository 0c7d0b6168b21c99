#include "kernels/support.hpp"

using namespace lab;
using namespace lab::test;

TEST_CASE("the instruction set can be chosen, and an unknown one is refused") {
  const auto names = cpu::instruction_sets();
  REQUIRE(!names.empty());
  CHECK(std::string(names.back()) == "plain");
  CHECK(std::string(cpu::instruction_set()) == names.front());
  cpu::set_instruction_set("plain");
  CHECK(std::string(cpu::instruction_set()) == "plain");
  CHECK_THAT(message_of([] { cpu::set_instruction_set("mmx"); }),
             ContainsSubstring("instruction set 'mmx' asked for, but this CPU runs"));
  CHECK(std::string(cpu::instruction_set()) == "plain");
  cpu::set_instruction_set(names.front());
}

TEST_CASE("the peaks are measured with each instruction set") {
  each_instruction_set([] { CHECK(cpu::flop_peak() > 1e7); });
}
