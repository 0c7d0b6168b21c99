#include <algorithm>

#include "parity/harness.hpp"

using namespace lab;
using namespace lab::test;

TEST_CASE("on the GPU each operation gives what its CPU reference gives") {
  for (const ParityRow& row : parity_table()) DYNAMIC_SECTION(row.op << ": " << row.what) {
      row.run();
    }
}

TEST_CASE("every operation has a row, and every row an operation") {
  const std::vector<std::string> ops = {
#define LAB_OP(name, chapter) #name,
#include "lab/kernels/ops.def"
#undef LAB_OP
  };
  const auto& table = parity_table();
  for (const std::string& op : ops) {
    INFO(op);
    CHECK(std::any_of(table.begin(), table.end(),
                      [&](const ParityRow& row) { return row.op == op; }));
  }
  for (const ParityRow& row : table) {
    INFO(row.op);
    CHECK(std::find(ops.begin(), ops.end(), row.op) != ops.end());
  }
}

TEST_CASE("an output's guard bands notice a stray write") {
  for (const std::int64_t at : {-1, 5}) {
    const auto a = DeviceArray<float>::output(std::vector<float>(5, 1.0f), 1);
    CHECK(a.intact());
    const float stray = 2;
    gpu::copy_to_device(a.data() + at, &stray, sizeof stray, stream());
    CHECK_FALSE(a.intact());
    CHECK(a.host() == std::vector<float>(5, 1.0f));
  }
}

TEST_CASE("comparison fails for NaN, for a lost infinity and for a missing element") {
  const std::vector<float> right = {1, 2, 3};
  CHECK(lab::test::mismatch({1, 2, 3}, right, 0.0, 0.0) == "");
  CHECK(lab::test::mismatch({1, NAN, 3}, right, 1e9, 1e9) != "");
  CHECK(lab::test::mismatch({1, 2, 3}, {1, NAN, 3}, 1e9, 1e9) != "");
  CHECK(lab::test::mismatch({1, -INFINITY, 3}, {1, INFINITY, 3}, 1e9, 1e9) != "");
  CHECK(lab::test::mismatch({1, 2}, right, 1.0, 1.0) != "");
}
