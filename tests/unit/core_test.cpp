#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lab/core/buffer.hpp"
#include "lab/core/error.hpp"
#include "lab/core/half.hpp"
#include "lab/core/mapped_file.hpp"
#include "lab/core/parallel.hpp"
#include "lab/core/rng.hpp"
#include "lab/core/tensor.hpp"
#include "lab/core/timing.hpp"
#include "support/catch.hpp"

using namespace lab;

TEST_CASE("f16 conversion rounds to nearest even and keeps the special values") {
  const auto bits = [](float v) { return to_half(v).bits; };
  CHECK(bits(65504.0f) == 0x7bff);
  CHECK(bits(65519.996f) == 0x7bff);
  CHECK(bits(65520.0f) == 0x7c00);
  CHECK(bits(-INFINITY) == 0xfc00);
  CHECK(bits(0x1p-24f) == 0x0001);
  CHECK(bits(0x1p-25f) == 0x0000);
  CHECK(bits(0x1.8p-25f) == 0x0001);
  CHECK(bits(1 + 0x1p-11f) == 0x3c00);
  CHECK(bits(1 + 0x1.8p-10f) == 0x3c02);
  CHECK(bits(-0.0f) == 0x8000);
  CHECK(bits(0.1f) == 0x2e66);
  CHECK((bits(NAN) & 0x7fff) == 0x7e00);
}

TEST_CASE("every f16 value survives f16 -> f32 -> f16") {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const Half h{static_cast<std::uint16_t>(i)};
    if ((i & 0x7c00) == 0x7c00 && (i & 0x3ff) != 0) {
      CHECK(std::isnan(to_float(h)));
    } else if (to_half(to_float(h)).bits != h.bits) {
      FAIL("f16 bits " << i);
    }
  }
}

TEST_CASE("bf16 conversion rounds to nearest even and keeps NaN") {
  const auto bits = [](std::uint32_t u) {
    return to_bfloat16(std::bit_cast<float>(u)).bits;
  };
  CHECK(bits(0x3f808000) == 0x3f80);
  CHECK(bits(0x3f818000) == 0x3f82);
  CHECK(bits(0x3f80ffff) == 0x3f81);
  CHECK(bits(0x7f7fffff) == 0x7f80);
  CHECK(bits(0x7f800001) == 0x7fc0);
  CHECK(bits(0x00018000) == 0x0002);  // subnormals are kept
}

TEST_CASE("a view indexes row-major and its rows are contiguous") {
  auto t = make_tensor<float>(3, 4, 5);
  for (std::size_t i = 0; i < t.size(); ++i) t.flat(i) = float(i);
  const auto v = view(t);
  CHECK(v.size() == 60);
  CHECK(v[2][3][4] == 59);
  CHECK(v.rows(1, 3)[0][0][0] == 20);
  CHECK(v.rows(1, 3).shape[0] == 2);
  CHECK(v.reshape<2>({12, 5})[11][4] == 59);
}

TEST_CASE("parallel_for covers every index once, whatever the grain and the thread count") {
  for (const int threads : {1, 2, 5}) {
    set_n_threads(threads);
    for (const std::int64_t n : {0, 1, 7, 1000})
      for (const std::int64_t grain : {1, 3, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<std::size_t>(n));
        parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
        });
        for (const auto& h : hits) REQUIRE(h == 1);
      }
  }
  CHECK_THROWS_WITH(set_n_threads(0), ContainsSubstring("from 1 to 1024"));
  set_n_threads(1);
}

TEST_CASE("an exception in a parallel_for body reaches the caller") {
  for (const int threads : {1, 2}) {
    set_n_threads(threads);
    CHECK_THROWS_AS(
        parallel_for(100, 1, [](std::int64_t, std::int64_t) { throw Error("x"); }), Error);
  }
  set_n_threads(1);
}

TEST_CASE("a file that cannot be mapped says why") {
  CHECK_THROWS_WITH(MappedFile("/no/such/file"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(MappedFile("/"), ContainsSubstring("not a regular file"));
}

TEST_CASE("an empty buffer has an address, a large one is aligned to huge pages") {
  CHECK(Buffer(0).data() != nullptr);
  const Buffer large(std::size_t{5} << 20);
  CHECK(reinterpret_cast<std::uintptr_t>(large.data()) % (2u << 20) == 0);
}

TEST_CASE("an arena's pieces are aligned, apart, and may be larger than a chunk") {
  Arena arena(1 << 16);
  std::vector<std::pair<std::byte*, std::size_t>> pieces;
  for (const std::size_t bytes : {1, 63, 64, 65, 40000, 40000, 1 << 20, 0, 7}) {
    std::byte* p = arena.allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
    std::fill_n(p, bytes, static_cast<std::byte>(pieces.size()));
    pieces.emplace_back(p, bytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (std::size_t b = 0; b < pieces[i].second; ++b)
      REQUIRE(pieces[i].first[b] == static_cast<std::byte>(i));
}

TEST_CASE("uniform numbers stay in range and their mean is right") {
  Rng rng(1);
  double sum = 0, square = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = rng.uniform(), z = rng.normal();
    REQUIRE((u >= 0 && u < 1));
    REQUIRE(rng.below(3) < 3);
    sum += u;
    square += z * z;
  }
  CHECK(sum / 10000 == Approx(0.5).margin(0.02));
  CHECK(square / 10000 == Approx(1.0).margin(0.05));
}

TEST_CASE("exit codes: 1 for an error, 2 for usage, 77 for missing hardware") {
  CHECK(guarded_main("t", [] { return 0; }) == 0);
  CHECK(guarded_main("t", []() -> int { throw Error("e"); }) == 1);
  CHECK(guarded_main("t", []() -> int { throw UsageError("e"); }) == 2);
  CHECK(guarded_main("t", []() -> int { throw UnavailableError("e"); }) == 77);
  CHECK(guarded_main("t", []() -> int { throw std::bad_alloc(); }) == 1);
}

TEST_CASE("median: the middle value, the upper of two, and none of nothing") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 3);
  CHECK_THROWS_WITH(median({}), "median: there are no values; measure something first");
  CHECK(milliseconds([] {}) >= 0);
}
