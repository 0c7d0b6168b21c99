/// @file
/// Exercise 03: what goes into the next step of a batching engine. README.md says how.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

namespace exercise {

/// Task 1. The share of a padded rectangle that is padding: sequences of these lengths are
/// computed as one array, each row as long as the longest.
/// @return 0 to 1; 0 if there is nothing to compute
inline double padding_share(const std::vector<std::size_t>& lengths) {
  // BEGIN SOLUTION
  std::size_t sum = 0, longest = 0;
  for (const std::size_t length : lengths) {
    sum += length;
    longest = std::max(longest, length);
  }
  if (longest == 0) return 0;
  return 1 - double(sum) / (double(lengths.size()) * double(longest));
  // SKELETON
  // throw std::logic_error("exercise 03, task 1: padding_share is not written yet");
  // END SOLUTION
}

/// Task 1. The share of slots that do nothing in static batching: requests are taken in
/// the order given, `n_slots` at a time, and a batch decodes until its longest answer is
/// done. The last batch may have fewer requests; it has as many slots.
/// @param answers  tokens of each answer; one token takes one step
/// @return idle slots of all steps / slots of all steps; 0 if there are no steps
inline double idle_share(const std::vector<std::size_t>& answers, std::size_t n_slots) {
  // BEGIN SOLUTION
  std::size_t steps = 0, used = 0;
  for (std::size_t begin = 0; begin < answers.size(); begin += n_slots) {
    std::size_t longest = 0;
    for (std::size_t i = begin; i < std::min(begin + n_slots, answers.size()); ++i) {
      used += answers[i];
      longest = std::max(longest, answers[i]);
    }
    steps += longest;
  }
  if (steps == 0) return 0;
  return 1 - double(used) / double(steps * n_slots);
  // SKELETON
  // throw std::logic_error("exercise 03, task 1: idle_share is not written yet");
  // END SOLUTION
}

/// A request that has not ended. Its text is its prompt and the tokens generated so far;
/// the keys and values of the first `computed` of them are stored.
struct Request {
  std::size_t id = 0;      ///< its place in the order: who arrived first has the smallest
  std::size_t prompt = 1;  ///< tokens
  std::size_t answer = 1;  ///< tokens after which it ends
  std::size_t generated = 0;  ///< tokens of the answer so far
  std::size_t computed = 0;
  std::size_t held = 0;  ///< positions of the KV cache that it holds; 0 while it waits

  std::size_t text() const { return prompt + generated; }
  std::size_t gap() const { return text() - computed; }  ///< tokens still to be computed
  /// Whether all but its newest token is computed: one token a step.
  bool decoding() const { return generated > 0 && gap() == 1; }
};

/// The requests and the limits.
struct Engine {
  std::size_t max_num_seqs = 8;             ///< requests that run at a time
  std::size_t max_num_batched_tokens = 64;  ///< tokens in one step; >= max_num_seqs
  std::size_t kv_positions = 1024;          ///< of all running requests together

  std::vector<Request> running, waiting;  ///< each in order of id

  std::size_t free_positions() const {
    std::size_t held = 0;
    for (const Request& r : running) held += r.held;
    return kv_positions - held;
  }
};

/// Tokens of one running request in a step: the next `count` that are not computed.
struct Piece {
  std::size_t id, count;
};

/// One step.
struct Plan {
  std::vector<Piece> pieces;
  std::size_t n_preempted = 0;

  std::size_t n_tokens() const {
    std::size_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.count;
    return sum;
  }
};

/// Task 2. Fills what is left of the step's tokens with texts that are not computed yet:
/// first of running requests that are not decoding, in order, then of waiting ones, in
/// order. A text that is longer than what is left is cut; the rest follows in later steps.
///
/// A waiting request starts if fewer than max_num_seqs run and its whole text so far fits
/// into the free positions, which it then holds. The first that cannot start keeps all
/// behind it waiting. Nobody starts in a step that has preempted someone.
/// @param plan  may hold decodes already; the new pieces go behind them
inline void add_prompts(Engine& engine, Plan& plan) {
  // BEGIN SOLUTION
  const auto left = [&] { return engine.max_num_batched_tokens - plan.n_tokens(); };
  for (const Request& r : engine.running)
    if (!r.decoding() && left() > 0)
      plan.pieces.push_back({r.id, std::min(r.gap(), left())});
  if (plan.n_preempted > 0) return;
  while (!engine.waiting.empty() && left() > 0) {
    Request& first = engine.waiting.front();
    if (engine.running.size() >= engine.max_num_seqs) return;
    if (first.text() > engine.free_positions()) return;
    first.held = first.text();
    plan.pieces.push_back({first.id, std::min(first.gap(), left())});
    engine.running.push_back(first);
    engine.waiting.erase(engine.waiting.begin());
  }
  // SKELETON
  // throw std::logic_error("exercise 03, task 2: add_prompts is not written yet");
  // END SOLUTION
}

/// Task 3. Adds the next token of every request that decodes, in order, before anything
/// else is in the plan. Its key and value need a place: it must hold as many positions as
/// its text has. If none is free, the last of the running requests is preempted, again and
/// again until one is free, even if that one is not decoding, or is the request itself,
/// which then adds nothing.
///
/// A preempted request keeps its tokens, loses what it holds and has computed, and waits at
/// its place in the order.
inline void add_decodes(Engine& engine, Plan& plan) {
  // BEGIN SOLUTION
  for (std::size_t i = 0; i < engine.running.size(); ++i) {
    if (!engine.running[i].decoding()) continue;
    while (i < engine.running.size() &&
           engine.running[i].text() > engine.running[i].held + engine.free_positions()) {
      Request victim = engine.running.back();
      engine.running.pop_back();
      victim.computed = 0;
      victim.held = 0;
      engine.waiting.insert(engine.waiting.begin(), victim);
      ++plan.n_preempted;
    }
    if (i == engine.running.size()) return;
    engine.running[i].held = engine.running[i].text();
    plan.pieces.push_back({engine.running[i].id, 1});
  }
  // SKELETON
  // throw std::logic_error("exercise 03, task 3: add_decodes is not written yet");
  // END SOLUTION
}

/// Task 4. The step has been computed: every piece's tokens are. A request whose text is
/// complete with that gets its next token; one that has its whole answer leaves at once,
/// and what it held is free.
/// @return the ids of those that ended, in the order of the pieces
inline std::vector<std::size_t> after_step(Engine& engine, const Plan& plan) {
  // BEGIN SOLUTION
  std::vector<std::size_t> ended;
  for (const Piece& piece : plan.pieces) {
    const auto r = std::find_if(engine.running.begin(), engine.running.end(),
                                [&](const Request& x) { return x.id == piece.id; });
    r->computed += piece.count;
    if (r->gap() > 0) continue;
    ++r->generated;
    if (r->generated < r->answer) continue;
    ended.push_back(r->id);
    engine.running.erase(r);
  }
  return ended;
  // SKELETON
  // throw std::logic_error("exercise 03, task 4: after_step is not written yet");
  // END SOLUTION
}

/// Tasks 2 and 3 together: what an engine does before every step.
inline Plan plan_step(Engine& engine) {
  Plan plan;
  add_decodes(engine, plan);
  add_prompts(engine, plan);
  return plan;
}

}  // namespace exercise
