// The CPU ladders: every rung computes what the definition says, whatever the size.
#include <cmath>

#include "lab/core/error.hpp"
#include "lab/core/parallel.hpp"
#include "ladders/cpu/problem.hpp"
#include "support/catch.hpp"

namespace lab::cpu_ladder {
namespace {

// Rows that fill no tile, tokens that fill no register tile, one block, more than a panel.
constexpr Size kSizes[] = {{1, 1, 32},   {1, 16, 64},  {3, 17, 288}, {2, 33, 256},
                           {5, 47, 544}, {8, 32, 512}, {9, 15, 96}};

TEST_CASE("every rung computes the definition, at sizes that fit and that do not") {
  set_n_threads(1);
  for (const DType dtype : {DType::q4_0, DType::q8_0})
    for (const Size size : kSizes) {
      Problem problem(size, dtype, 3 * size.N * size.K);  // several copies of the weights
      for (const Ladder& ladder : all_ladders())
        for (const Rung& rung : ladder.rungs) {
          if (!skipped(rung).empty()) continue;
          const double error = problem.error(rung);
          INFO(ladder.name << " " << rung.name << " " << name(dtype) << " T=" << size.T
                           << " N=" << size.N << " K=" << size.K << ": " << error);
          CHECK(error <= rung.tolerance);
        }
    }
}

TEST_CASE("a rung that leaves out a result or computes another is found") {
  Problem problem({3, 17, 64}, DType::q4_0);
  Rung rung = all_ladders().front().rungs.front();
  rung.run = [](const Operands&) {};
  CHECK(std::isnan(problem.error(rung)));
  rung.run = [](const Operands& o) {
    all_ladders().front().rungs.front().run(o);
    o.y.data[20] *= 1.01f;
  };
  CHECK_FALSE(problem.error(rung) <= rung.tolerance);
}

TEST_CASE("predictions: what each rung saves") {
  for (const Ladder& ladder : all_ladders()) {
    const Cost first = ladder.rungs.front().predict(ladder.counted, DType::q4_0);
    const Cost last = ladder.rungs.back().predict(ladder.counted, DType::q4_0);
    CHECK(last.bytes * 7 <= first.bytes);
    CHECK(last.multiplies * 10 < first.multiplies);
    for (const Rung& rung : ladder.rungs)
      if (rung.reads != Form::decoded && ladder.counted.T == 1)
        CHECK(rung.predict(ladder.counted, DType::q8_0).bytes ==
              weight_bytes(rung.reads, ladder.counted, DType::q8_0));
  }
}

TEST_CASE("errors") {
  CHECK_THROWS_WITH(Problem({1, 4, 33}, DType::q4_0),
                    ContainsSubstring("a multiple of 32"));
  CHECK_THROWS_WITH(Problem({0, 4, 32}, DType::q4_0),
                    ContainsSubstring("must be positive"));
  CHECK_THROWS_WITH(Problem({1, 4, 256}, DType::q4_k),
                    ContainsSubstring("use Q4_0 or Q8_0"));
}

}  // namespace
}  // namespace lab::cpu_ladder
