// What the spaces promise the scheduler.
#include "support.hpp"

using namespace lab;
using namespace lab::test;

TEST_CASE("slots: one a sequence, whatever its length; the lowest free one first") {
  SlotKvSpace kv(2, 10);
  CHECK(kv.longest() == 10);
  CHECK(kv.total() == 20);
  CHECK_FALSE(kv.admit({}, 11));
  REQUIRE(kv.admit({}, 3)->sequence == 0);
  REQUIRE(kv.admit({}, 10)->sequence == 1);
  CHECK(kv.held() == 20);
  CHECK_FALSE(kv.admit({}, 1));
  CHECK(kv.grow(0, 10));
  CHECK_FALSE(kv.grow(0, 11));
  kv.release(0);
  CHECK(kv.held() == 10);
  CHECK(kv.admit({}, 1)->sequence == 0);
  CHECK_THROWS_WITH(SlotKvSpace(0, 5), ContainsSubstring("0 slots of 5 positions"));
  CHECK_THROWS_WITH(SlotKvSpace(5, 0), ContainsSubstring("at least 1"));
}

TEST_CASE("pool: positions go where they are needed") {
  PooledKvSpace kv(10);
  CHECK(kv.admit({}, 6)->sequence == 0);
  CHECK_FALSE(kv.admit({}, 5));
  CHECK(kv.held() == 6);
  CHECK(kv.admit({}, 3)->sequence == 1);
  CHECK(kv.grow(1, 4));
  CHECK_FALSE(kv.grow(1, 5));
  CHECK(kv.grow(0, 2));  // it has more already, and keeps it
  CHECK(kv.held() == 10);
  kv.release(0);
  CHECK(kv.held() == 4);
  CHECK(kv.admit({}, 1)->sequence == 0);
  CHECK(kv.admit({}, 1)->sequence == 2);
  CHECK_THROWS_WITH(PooledKvSpace(0), ContainsSubstring("0 positions"));
}

TEST_CASE("pool: numbers stay below the most that were ever in use, over many changes") {
  PooledKvSpace kv(1000);
  Rng rng(1);
  std::set<std::int64_t> used;
  for (int i = 0; i < 20000; ++i) {
    if (used.size() < 10 && (used.empty() || rng.below(2))) {
      const auto lease = kv.admit({}, 1 + rng.below(50));
      REQUIRE(lease);
      REQUIRE(lease->sequence < 10);
      REQUIRE(used.insert(lease->sequence).second);
    } else {
      auto it = used.begin();
      std::advance(it, rng.below(std::ssize(used)));
      kv.release(*it);
      used.erase(it);
    }
  }
  while (!used.empty()) kv.release(used.extract(used.begin()).value());
  CHECK(kv.held() == 0);
}

TEST_CASE("policies: names, places, and what they refuse") {
  Request r = make_request(1, 10, 30);
  r.priority = 3;
  CHECK(first_come_first_served().handicap_s(r) == 0);
  CHECK(by_priority(2).handicap_s(r) == 6);
  CHECK(shortest_first(0.5).handicap_s(r) == 20);
  CHECK(earliest_deadline(60).handicap_s(r) == 60);
  r.slo.ttft_s = 0.25;
  CHECK(earliest_deadline(60).handicap_s(r) == 0.25);
  for (const char* name : {"fcfs", "priority", "shortest", "deadline"})
    CHECK(make_policy(name).name == name);
  CHECK_THROWS_WITH(make_policy("sjf"), ContainsSubstring("\"sjf\" is unknown"));
  CHECK_THROWS_WITH(by_priority(0), ContainsSubstring("a wait of 0 s"));
  CHECK_THROWS_WITH(shortest_first(-1), ContainsSubstring("a wait of -1 s"));
  CHECK_THROWS_WITH(earliest_deadline(std::nan("")), ContainsSubstring("a wait of nan s"));
}
