#include <exercise.hpp>

#include "testing.hpp"

using exercise::Engine;
using exercise::Plan;
using exercise::Request;

namespace {

/// A running request that holds what it has computed.
Request runs(std::size_t id, std::size_t prompt, std::size_t generated,
             std::size_t computed, std::size_t held, std::size_t answer = 9) {
  return {id, prompt, answer, generated, computed, held};
}

Request waits(std::size_t id, std::size_t prompt, std::size_t generated = 0) {
  return {id, prompt, 9, generated, 0, 0};
}

/// The pieces as text: "1x4 2x1" is 4 tokens of request 1, then one of request 2.
std::string text(const Plan& plan) {
  std::string out;
  for (const auto& [id, count] : plan.pieces) {
    if (!out.empty()) out += ' ';
    out += std::to_string(id) + "x" + std::to_string(count);
  }
  return out;
}

std::string ids(const std::vector<Request>& requests) {
  std::string out;
  for (const Request& r : requests) out += std::to_string(r.id) + " ";
  return out;
}

/// What task 2 adds to a step that holds `decodes` of others already.
std::string prompts_of(Engine& engine, std::vector<exercise::Piece> decodes = {},
                       std::size_t n_preempted = 0) {
  Plan plan{std::move(decodes), n_preempted};
  exercise::add_prompts(engine, plan);
  return text(plan);
}

/// What task 3 adds.
std::string decodes_of(Engine& engine) {
  Plan plan;
  exercise::add_decodes(engine, plan);
  return text(plan);
}

std::size_t random_below(std::uint32_t& state, std::size_t n) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % n;
}

}  // namespace

// ---------------------------------------------------------------- task 1

TEST_CASE("padding: the share of a rectangle", "[task1][1pt]") {
  INFO("hint: the rectangle has B rows of the longest length, and B * max numbers in all");
  CHECK(exercise::padding_share({1, 2, 3, 10}) == Approx(0.6));
  CHECK(exercise::padding_share({7, 7, 7}) == Approx(0));
  CHECK(exercise::padding_share({5}) == Approx(0));
}

TEST_CASE("padding: nothing to compute", "[task1][1pt]") {
  INFO("hint: 0 / 0 is not a number; without a longest length there is no padding");
  CHECK(exercise::padding_share({}) == 0);
  CHECK(exercise::padding_share({0, 0}) == 0);
  CHECK(exercise::idle_share({}, 4) == 0);
}

TEST_CASE("idle slots: each batch waits for its own longest answer", "[task1][1pt]") {
  INFO("hint: the steps of all batches add up; each batch takes its own longest answer");
  CHECK(exercise::idle_share({4, 1, 2, 2, 1, 9}, 2) == Approx(1 - 19.0 / 30));
  CHECK(exercise::idle_share({3, 3, 8, 8}, 2) == Approx(0));
}

TEST_CASE("idle slots: the last batch may not be full", "[task1][1pt]") {
  INFO("hint: slots that no request sits in are idle too");
  CHECK(exercise::idle_share({2, 2, 2, 6}, 3) == Approx(1 - 12.0 / 24));
}

// ---------------------------------------------------------------- task 2

TEST_CASE("prompts: waiting requests start in order", "[task2][1pt]") {
  INFO("hint: move a request from waiting to running; it holds its text from then on");
  Engine engine;
  engine.waiting = {waits(1, 5), waits(2, 7)};
  CHECK(prompts_of(engine) == "1x5 2x7");
  CHECK(ids(engine.running) == "1 2 ");
  CHECK(ids(engine.waiting).empty());
  CHECK(engine.free_positions() == 1024 - 12);
}

TEST_CASE("prompts: the budget cuts a text in pieces", "[task2][2pt]") {
  INFO(
      "hint: a piece is the smaller of the gap and what the step has left, decodes "
      "counted; without room for one token nobody starts");
  Engine engine;
  engine.max_num_batched_tokens = 8;
  engine.waiting = {waits(3, 20), waits(4, 2)};
  CHECK(prompts_of(engine, {{1, 1}, {2, 1}}) == "1x1 2x1 3x6");
  CHECK(ids(engine.waiting) == "4 ");
  REQUIRE(engine.running.size() == 1);
  engine.running[0].computed = 6;
  CHECK(prompts_of(engine) == "3x8");
  engine.running[0].computed = 17;
  CHECK(prompts_of(engine) == "3x3 4x2");
}

TEST_CASE("prompts: those that have started go on first", "[task2][1pt]") {
  INFO("hint: first running requests that are not decoding, then waiting ones");
  Engine engine;
  engine.max_num_batched_tokens = 10;
  engine.running = {runs(1, 4, 2, 5, 6), runs(2, 12, 0, 4, 12)};
  engine.waiting = {waits(3, 6)};
  CHECK(prompts_of(engine, {{1, 1}}) == "1x1 2x8 3x1");
}

TEST_CASE("prompts: no more than max_num_seqs run", "[task2][1pt]") {
  INFO("hint: count those that run already, and those just started");
  Engine engine;
  engine.max_num_seqs = 3;
  engine.running = {runs(1, 4, 2, 5, 6)};
  engine.waiting = {waits(2, 2), waits(3, 2), waits(4, 2)};
  CHECK(prompts_of(engine, {{1, 1}}) == "1x1 2x2 3x2");
  CHECK(ids(engine.waiting) == "4 ");
}

TEST_CASE("prompts: who does not fit into memory keeps all behind waiting",
          "[task2][2pt]") {
  INFO(
      "hint: the whole text needs room, generated tokens too, even if the step takes only "
      "a piece; stop at the first that has none, or it would starve");
  Engine engine;
  engine.max_num_batched_tokens = 12;
  engine.kv_positions = 30;
  engine.running = {runs(1, 8, 2, 9, 10)};
  engine.waiting = {waits(2, 15, 6), waits(3, 2)};
  CHECK(prompts_of(engine, {{1, 1}}) == "1x1");
  CHECK(ids(engine.waiting) == "2 3 ");
  engine.kv_positions = 31;  // just enough
  CHECK(prompts_of(engine, {{1, 1}}) == "1x1 2x11");
  CHECK(ids(engine.running) == "1 2 ");
}

TEST_CASE("prompts: nobody starts in a step that preempted", "[task2][1pt]") {
  INFO("hint: memory is short just now; those that run may still go on with their text");
  Engine engine;
  engine.running = {runs(1, 9, 0, 3, 9)};
  engine.waiting = {waits(2, 2)};
  CHECK(prompts_of(engine, {}, 1) == "1x6");
  CHECK(ids(engine.waiting) == "2 ");
}

// ---------------------------------------------------------------- task 3

TEST_CASE("decodes: one token of each that decodes", "[task3][1pt]") {
  INFO("hint: skip those whose text is not computed yet; each other holds its text now");
  Engine engine;
  engine.running = {runs(1, 4, 2, 5, 5), runs(2, 9, 0, 3, 9), runs(3, 5, 1, 5, 5)};
  CHECK(decodes_of(engine) == "1x1 3x1");
  CHECK(engine.running[0].held == 6);
  CHECK(engine.running[1].held == 9);
  CHECK(engine.running[2].held == 6);
}

TEST_CASE("decodes: without a free position the last one goes", "[task3][2pt]") {
  INFO(
      "hint: take the victim from the end of running, so that it has no piece in this step "
      "yet; go on taking until there is room");
  Engine engine;
  engine.kv_positions = 16;
  engine.running = {runs(1, 4, 2, 5, 5), runs(2, 4, 2, 5, 5), runs(3, 6, 0, 2, 6)};
  CHECK(decodes_of(engine) == "1x1 2x1");
  CHECK(ids(engine.running) == "1 2 ");
  CHECK(ids(engine.waiting) == "3 ");
  CHECK(engine.free_positions() == 4);
}

TEST_CASE("decodes: the last one may be the request itself", "[task3][1pt]") {
  INFO("hint: if the request preempts itself it has no piece, and the loop is over");
  Engine engine;
  engine.kv_positions = 11;
  engine.running = {runs(1, 4, 2, 5, 5), runs(2, 4, 2, 5, 5)};
  CHECK(decodes_of(engine) == "1x1");
  CHECK(ids(engine.running) == "1 ");
  CHECK(ids(engine.waiting) == "2 ");
}

TEST_CASE("decodes: what a victim keeps and what it loses", "[task3][2pt]") {
  INFO(
      "hint: its tokens have been sent to somebody and stay; its keys and values are gone, "
      "so nothing of it is computed; it waits in order of id");
  Engine engine;
  engine.kv_positions = 17;
  engine.running = {runs(1, 8, 2, 9, 9), runs(2, 3, 2, 4, 4), runs(3, 3, 2, 4, 4)};
  engine.waiting = {waits(7, 5)};
  Plan plan;
  exercise::add_decodes(engine, plan);
  CHECK(plan.n_preempted == 1);
  CHECK(ids(engine.waiting) == "3 7 ");
  const Request victim = engine.waiting.front();
  CHECK(victim.id == 3);
  CHECK(victim.generated == 2);
  CHECK(victim.computed == 0);
  CHECK(victim.held == 0);
}

// ---------------------------------------------------------------- task 4

TEST_CASE("after a step: a complete text gets a token, a piece of one does not",
          "[task4][2pt]") {
  INFO("hint: add the count first; a token is drawn only if no gap is left");
  Engine engine;
  engine.running = {runs(1, 4, 2, 5, 6), runs(2, 9, 0, 3, 9), runs(3, 5, 0, 0, 5)};
  CHECK(exercise::after_step(engine, {{{1, 1}, {2, 4}, {3, 5}}, 0}).empty());
  CHECK(engine.running[0].generated == 3);
  CHECK(engine.running[0].computed == 6);
  CHECK(engine.running[1].generated == 0);
  CHECK(engine.running[1].computed == 7);
  CHECK(engine.running[2].generated == 1);
  CHECK(engine.running[2].computed == 5);
}

TEST_CASE("after a step: who is done leaves at once", "[task4][2pt]") {
  INFO(
      "hint: the token that completes the answer is the last one; find requests by id, "
      "because those before them may have left");
  Engine engine;
  engine.running = {runs(1, 4, 2, 5, 6, 3), runs(2, 5, 0, 0, 5, 1), runs(3, 4, 2, 5, 6)};
  CHECK(exercise::after_step(engine, {{{1, 1}, {3, 1}, {2, 5}}, 0}) ==
        std::vector<std::size_t>{1, 2});
  CHECK(ids(engine.running) == "3 ");
  CHECK(engine.running.at(0).generated == 3);
  CHECK(engine.free_positions() == 1024 - 6);
}

// ---------------------------------------------------------------- task 5

TEST_CASE("whole runs: everyone gets their answer, within every limit", "[task5][3pt]") {
  INFO("hint: tasks 2 to 4 are not right together: look at the first failure above");
  std::uint32_t state = testing::seed();
  for (int round = 0; round < 40; ++round) {
    Engine engine;
    engine.max_num_seqs = 1 + random_below(state, 5);
    engine.max_num_batched_tokens = engine.max_num_seqs + random_below(state, 9);
    engine.kv_positions = 24 + random_below(state, 20);
    std::size_t wanted = 0, drawn = 0, ended = 0;
    for (std::size_t id = 0; id < 12; ++id) {
      engine.waiting.push_back(waits(id, 1 + random_below(state, 12)));
      engine.waiting.back().answer = 1 + random_below(state, 12);
      wanted += engine.waiting.back().answer;
    }
    std::vector<std::size_t> stored(12);  // what a KV cache would have of each
    for (int step = 0; step < 2000 && ended < 12; ++step) {
      const Plan plan = exercise::plan_step(engine);
      const auto in_order = [](const Request& a, const Request& b) { return a.id < b.id; };
      REQUIRE(std::is_sorted(engine.running.begin(), engine.running.end(), in_order));
      REQUIRE(std::is_sorted(engine.waiting.begin(), engine.waiting.end(), in_order));
      for (const Request& r : engine.waiting) stored[r.id] = 0;
      REQUIRE(plan.n_tokens() > 0);  // somebody can always go on
      REQUIRE(plan.n_tokens() <= engine.max_num_batched_tokens);
      REQUIRE(engine.running.size() <= engine.max_num_seqs);
      REQUIRE(engine.free_positions() <= engine.kv_positions);
      for (const exercise::Piece& piece : plan.pieces) {
        const auto r = std::find_if(engine.running.begin(), engine.running.end(),
                                    [&](const Request& x) { return x.id == piece.id; });
        REQUIRE(r != engine.running.end());
        REQUIRE(r->generated < r->answer);
        REQUIRE(r->computed == stored[r->id]);
        REQUIRE(piece.count <= r->gap());
        REQUIRE(r->computed + piece.count <= r->held);
        stored[r->id] += piece.count;
        drawn += piece.count == r->gap();
      }
      ended += exercise::after_step(engine, plan).size();
    }
    REQUIRE(ended == 12);
    REQUIRE(drawn == wanted);
  }
}
