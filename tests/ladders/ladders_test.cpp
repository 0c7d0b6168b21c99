#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/core/error.hpp"
#include "ladders/benches.hpp"
#include "support/catch.hpp"

using namespace lab;
using namespace lab::ladders;

namespace {

const Ladder& ladder(const std::string& name) {
  static const std::vector<Ladder> all = simt::all_ladders();
  return *std::find_if(all.begin(), all.end(),
                       [&](const Ladder& l) { return l.name == name; });
}

/// The size with N and K rounded up to what the rung can take.
Size fitting(const Rung& rung, Size s) {
  s.N = (s.N + rung.multiple_n - 1) / rung.multiple_n * rung.multiple_n;
  s.K = (s.K + rung.multiple_k - 1) / rung.multiple_k * rung.multiple_k;
  return s;
}

void every_rung_is_right(const std::string& name, const std::vector<Size>& sizes) {
  const Ladder& l = ladder(name);
  for (const Rung& rung : l.rungs)
    for (const Size wanted : sizes) {
      const Size s = fitting(rung, wanted);
      if (rung.longest != 0 && s.K > rung.longest) continue;
      INFO(rung.file << ", T = " << s.T << ", N = " << s.N << ", K = " << s.K);
      Problem problem(kSimt, l.operation, s);
      problem.run(rung);
      CHECK(problem.check() == "");
      CHECK(emulator::last_report() == "");
    }
}

struct Restore {
  emulator::Order order = emulator::config().order;
  ~Restore() { emulator::config().order = order; }
};

}  // namespace

TEST_CASE("gemm is right for sizes that fit no tile") {
  every_rung_is_right("gemm",
                      {{1, 1, 1}, {3, 5, 7}, {31, 33, 65}, {129, 130, 40}, {1, 257, 32}});
}
TEST_CASE("gemv is right for sizes that fit no tile") {
  every_rung_is_right("gemv", {{1, 1, 1}, {1, 5, 7}, {1, 33, 1025}, {1, 130, 512}});
}
TEST_CASE("rms_norm is right for sizes that fit no block") {
  every_rung_is_right("rms_norm",
                      {{1, 1, 1}, {3, 1, 31}, {33, 1, 257}, {2, 1, 8192}, {2, 1, 9001}});
}
TEST_CASE("softmax is right for sizes that fit no block") {
  every_rung_is_right("softmax",
                      {{1, 1, 1}, {3, 1, 31}, {33, 1, 257}, {2, 1, 8192}, {2, 1, 9001}});
}

TEST_CASE("attention is right for sizes that fit no tile") {
  // queries that are all positions, the last of them, and one: a decode step
  every_rung_is_right("attention", {{1, 1, 64},
                                    {3, 3, 64},
                                    {33, 33, 64},
                                    {65, 65, 64},
                                    {7, 100, 64},
                                    {64, 130, 64},
                                    {1, 200, 64}});
  const Rung& naive = ladder("attention").rungs[0];  // the only one of any head_dim
  Problem problem(kSimt, Operation::attention, {5, 9, 7});
  problem.run(naive);
  CHECK(problem.check() == "");
}

TEST_CASE("rungs do not depend on the order of a block's threads") {
  const Restore restore;
  for (const auto order :
       {emulator::Order::reverse, emulator::Order::random, emulator::Order::greedy}) {
    emulator::config().order = order;
    every_rung_is_right("gemm", {{33, 34, 64}, {130, 20, 64}});
    every_rung_is_right("gemv", {{1, 33, 512}});
    every_rung_is_right("rms_norm", {{2, 1, 1000}});
    every_rung_is_right("softmax", {{2, 1, 1000}});
    every_rung_is_right("attention", {{70, 140, 64}});
  }
}

TEST_CASE("softmax keeps its promises about infinities and NaN") {
  const float inf = std::numeric_limits<float>::infinity();
  const auto fill = [&](std::vector<float>& x) {  // (8, 1024)
    const auto at = [&](int row, int k) -> float& {
      return x[std::size_t(row * 1024 + k)];
    };
    for (int k = 0; k < 1024; ++k) at(0, k) = -inf;  // no softmax
    for (int k = 0; k < 1023; ++k) at(1, k) = -inf;  // one element only
    for (int k = 1; k < 1024; ++k) at(2, k) = -inf;
    at(3, 700) = inf;
    at(4, 1) = std::nanf("");
    for (int k = 0; k < 1024; ++k) at(5, k) *= 1e4f;  // exp overflows
    for (int k = 0; k < 1024; ++k) at(6, k) = -3e38f;
    for (int k = 0; k < 1024; k += 3) at(7, k) = -inf;
  };
  const Ladder& l = ladder("softmax");
  for (const Rung& rung : l.rungs) {
    INFO(rung.file);
    Problem problem(kSimt, l.operation, {8, 1, 1024}, fill);
    problem.run(rung);
    CHECK(problem.check() == "");
  }
}

TEST_CASE("the traffic of every rung is as predicted", "[trace]") {
  if (!emulator::traces_memory()) return;
  const Bench bench{.gpu = kSimt, .count = count_on_simt};
  for (const Ladder& l : simt::all_ladders()) {
    // another multiple of the tile than the one on the page
    const Size s = l.operation == Operation::attention
                       ? Size{2 * l.tile.T, 3 * l.tile.N, l.tile.K}
                       : Size{l.tile.T, l.tile.N, 2 * l.tile.K};
    const Record record = climb(bench, l, s);
    REQUIRE(record.whole_tiles);
    for (const Result& r : record.rungs) {
      INFO(r.file << "\n" << table(record));
      CHECK(r.wrong == "");
      CHECK(r.skipped == "");
      CHECK((*r.counted == r.predicted));
    }
  }
}

TEST_CASE("each idea changes what it says it changes") {
  const auto traffic = [](const char* name, std::size_t rung) {
    const Ladder& l = ladder(name);
    return l.rungs.at(rung - 1).predict(l.counted);
  };
  const auto sectors = [&](std::size_t rung) {
    return traffic("gemm", rung).global_load.units;
  };
  CHECK(sectors(1) == 33 * sectors(2) / 8);  // 33 sectors for 32 products, then 8
  CHECK(sectors(2) == 32 * sectors(3));      // a tile of 32 rows
  CHECK(sectors(3) == 4 * sectors(5));       // of 128
  CHECK(sectors(5) == 2 * sectors(7));       // 16 bits
  const auto wavefronts = [&](std::size_t rung) {
    return traffic("gemm", rung).shared_load.units;
  };
  CHECK(wavefronts(3) * 2 == wavefronts(4) * 33);
  CHECK(wavefronts(4) == 8 * wavefronts(5));
  CHECK(traffic("gemm", 5).shared_load.requests ==
        4 * traffic("gemm", 6).shared_load.requests);
  CHECK(traffic("softmax", 2).global_load.units ==
        3 * traffic("softmax", 5).global_load.units);
  CHECK(traffic("gemv", 3).global_load.units * 5 ==
        traffic("gemv", 4).global_load.units * 8);
  CHECK(traffic("gemv", 4).global_load.units == 4 * traffic("gemv", 6).global_load.units);
  CHECK(traffic("attention", 3).shared_load.units ==
        8 * traffic("attention", 4).shared_load.units);
  CHECK(traffic("attention", 4) == traffic("attention", 5));
}

TEST_CASE("scores that stay on the chip cost no bytes") {
  // From 8192 to 16384 tokens, one head: what grows with T N, and how fast.
  const Ladder& l = ladder("attention");
  const auto bytes = [&](std::size_t rung, std::int64_t T) {
    const Traffic t = l.rungs.at(rung - 1).predict({T, T, 64});
    return double(kSectorBytes * (t.global_load.units + t.global_store.units));
  };
  for (const std::int64_t T : {8192, 16384}) {
    // The scores alone, written twice and read three times, against all of the next rung.
    const double scores = 5 * 4.0 * double(T) * double(T);
    CHECK(bytes(1, T) > scores);
    // arXiv:2205.14135, theorem 2: T N K^2 / M numbers; 6 of it, of which the mask leaves
    // half and half a tile a row; q and y besides.
    const double M = 3 * 32 * 64, order = double(T) * double(T) * 64 * 64 / M;
    CHECK(bytes(2, T) ==
          Approx(4 * (3 * order * (1 + 32.0 / double(T)) + 2.0 * double(T) * 64)));
    CHECK(scores > 2 * bytes(2, T));
    CHECK(bytes(3, T) < bytes(2, T) / 3.9);
  }
}

TEST_CASE("the harness finds what is wrong") {
  const Ladder& l = ladder("rms_norm");
  const Size s{3, 1, 64};
  const auto wrong = [&](void (*run)(const Operands&, Stream)) {
    Problem problem(kSimt, l.operation, s);
    problem.run({.name = "", .run = run});
    return problem.check();
  };
  CHECK(wrong([](const Operands&, Stream) {}).rfind("y[0, 0] is nan and should be", 0) ==
        0);
  const auto message = wrong([](const Operands& o, Stream stream) {
    simt::all_ladders()[1].rungs[1].run(o, stream);
    simt::copy_on_device(o.y.data + 3 * 64, o.y.data, 4, stream);  // just behind y
  });
  CHECK(message == "it wrote outside y");
  CHECK(wrong([](const Operands& o, Stream stream) {
          simt::all_ladders()[1].rungs[1].run(o, stream);
          const float off = 1e30f;
          simt::copy_to_device(o.y.data + 2 * 64 + 63, &off, 4, stream);
        }).rfind("y[2, 63] is", 0) == 0);
}

TEST_CASE("sizes that cannot be are refused in one sentence") {
  const Ladder& l = ladder("gemm");
  CHECK_THROWS_WITH(
      Problem(kSimt, l.operation, {0, 1, 1}),
      "a problem of T = 0, N = 1, K = 1 was asked for; all must be at least 1");
  CHECK_THROWS_WITH(Problem(kSimt, Operation::attention, {5, 4, 64}),
                    "attention of T = 5 queries over N = 4 positions was asked for; the "
                    "queries are the last positions, so N must be at least T");
  Problem problem(kSimt, l.operation, {4, 4, 6});
  CHECK_THROWS_WITH(problem.run(l.rungs[5]),
                    "gemm/6_vectorised.cu needs K to be a multiple of 4, and it is 6");
  CHECK(unsupported(ladder("softmax").rungs.back(), {1, 1, 8196}) ==
        "softmax/5_registers.cu keeps a row in registers and takes K up to 8192, and it is "
        "8196");
}

TEST_CASE("a rung that cannot take a size is skipped, and says why") {
  const Bench bench{.gpu = kSimt};
  const Record record = climb(bench, ladder("gemv"), {1, 3, 12});
  CHECK(record.rungs[3].skipped == "");
  CHECK(record.rungs[5].skipped ==
        "gemv/6_int8.cu needs K to be a multiple of 16, and it is 12");
  CHECK(!record.whole_tiles);
  CHECK(json(record)["rungs"][5]["skipped"] == record.rungs[5].skipped);
}

TEST_CASE("speeds are shares of the bandwidth and of the library") {
  Bench bench{.gpu = kSimt, .bandwidth = 1e9};
  bench.time = [](const Rung& rung, const Operands&, Stream) {
    return rung.name == "peer" ? 1e-6 : 4e-6;
  };
  Rung peer = ladder("gemv").rungs[0];
  peer.name = "peer";
  bench.peers = {peer};
  const Record record = climb(bench, ladder("gemv"), {1, 16, 16});
  CHECK(peer_share(record, record.rungs[0]) == std::optional<double>(0.25));
  CHECK(!peer_share(record, record.rungs[4]));  // f16: the peer reads f32
  // (16 + 256 + 16) elements of 4 bytes in 4 us, of 1 byte/ns
  CHECK(bandwidth_share(record, record.rungs[0]) == Approx(288 * 4 / 4e3));
  CHECK(json(record)["peers"].size() == 1);
}
