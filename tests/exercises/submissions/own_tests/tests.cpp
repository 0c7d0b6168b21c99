#include "testing.hpp"

TEST_CASE("sums: by hand", "[task1][2pt]") { CHECK(true); }
