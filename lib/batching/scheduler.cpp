#include "lab/batching/scheduler.hpp"

#include <algorithm>
#include <cmath>

#include "lab/core/error.hpp"

namespace lab {

void SchedulerConfig::validate() const {
  LAB_CHECK(max_num_seqs >= 1, "max_num_seqs is {}; give a number >= 1", max_num_seqs);
  LAB_CHECK(
      max_num_batched_tokens >= max_num_seqs,
      "max_num_batched_tokens is {} but max_num_seqs is {}; a step must have room for "
      "one token of every running request, so raise the first or lower the second",
      max_num_batched_tokens, max_num_seqs);
  LAB_CHECK(prefill_chunk >= 0, "prefill_chunk is {}; give a number >= 0 (0 is no limit)",
            prefill_chunk);
  LAB_CHECK(waiting_served_ratio >= 0,
            "waiting_served_ratio is {}; give a number >= 0 (0 takes requests in at once)",
            waiting_served_ratio);
  LAB_CHECK(max_waiting_tokens >= 0, "max_waiting_tokens is {}; give a number >= 0",
            max_waiting_tokens);
  LAB_CHECK(chunked_prefill || prefill_chunk == 0,
            "prefill_chunk is {} but chunked_prefill is off; turn it on or leave the chunk "
            "out",
            prefill_chunk);
  LAB_CHECK(!chunked_prefill || interleave == Interleave::mixed,
            "chunked_prefill is on but prompts have steps of their own; turn it off or "
            "choose mixed steps");
  LAB_CHECK(!preempt_for_order || admission == Admission::on_demand,
            "preempt_for_order is on but admission reserves, which promises never to "
            "interrupt; turn it off or admit on demand");
  LAB_CHECK(!preempt_for_order || interleave == Interleave::mixed,
            "preempt_for_order is on but prompts have steps of their own; turn it off or "
            "choose mixed steps");
}

Scheduler::Scheduler(const SchedulerConfig& config, Policy policy, KvSpace& kv,
                     std::int64_t context)
    : config_(config), policy_(std::move(policy)), kv_(kv), context_(context) {
  config_.validate();
}

LiveRequest* Scheduler::find(std::int64_t id) const {
  const auto found = live_.find(id);
  return found == live_.end() ? nullptr : found->second.get();
}

// ----- in and out

LiveRequest& Scheduler::submit(Request request, double now_s, OnToken on_token) {
  validate(request);
  LAB_CHECK(!live_.contains(request.id),
            "request {}: an unfinished request has this id already; choose another",
            request.id);
  const std::int64_t prompt = std::ssize(request.prompt);
  LAB_CHECK(
      prompt <= context_,
      "request {}: the prompt has {} tokens but the model's context holds {}; shorten "
      "the prompt",
      request.id, prompt, context_);
  // Position context - 1 still gives one token, which is not fed back.
  request.max_tokens = std::min(request.max_tokens, context_ - prompt + 1);
  check_can_run(request);
  if (!request.arrival_s) request.arrival_s = now_s;
  LAB_CHECK(*request.arrival_s <= now_s,
            "request {}: it arrives at {} s but it is {} s now; submit it when it arrives",
            request.id, *request.arrival_s, now_s);

  const double due = *request.arrival_s + policy_.handicap_s(request);
  LAB_CHECK(!std::isnan(due), "request {}: policy {} gives it no place in the order",
            request.id, policy_.name);
  const std::int64_t id = request.id;
  auto live = std::make_unique<LiveRequest>(std::move(request), due, n_submitted_++,
                                            std::move(on_token));
  waiting_.insert(live.get());
  return *(live_[id] = std::move(live));
}

void Scheduler::check_can_run(const Request& request) const {
  const std::int64_t prompt = std::ssize(request.prompt);
  const std::int64_t positions = prompt + request.max_tokens - 1;
  LAB_CHECK(positions <= kv_.longest(),
            "request {}: prompt and answer take up to {} positions but the KV cache holds "
            "{}; shorten the prompt, lower max_tokens or make the cache larger",
            request.id, positions, kv_.longest());
  if (config_.chunked_prefill) return;
  // A preempted request computes prompt and answer again, in one piece too.
  const bool again = config_.admission == Admission::on_demand;
  const std::int64_t piece = again ? positions : prompt;
  LAB_CHECK(
      piece <= config_.max_num_batched_tokens,
      "request {}: {} of {} tokens must be computed in one step but "
      "max_num_batched_tokens is {}; raise it, turn chunked_prefill on or shorten the "
      "request",
      request.id, again ? "prompt and answer" : "a prompt", piece,
      config_.max_num_batched_tokens);
}

std::unique_ptr<LiveRequest> Scheduler::remove(std::int64_t id, double now_s) {
  LiveRequest* r = find(id);
  if (!r) return nullptr;
  now_s_ = now_s;
  if (r->phase == RequestPhase::running)
    leave(*r);
  else
    waiting_.erase(r);
  r->phase = RequestPhase::ended;
  return std::move(live_.extract(id).mapped());
}

// ----- into the cache and out of it

// [region admit]
bool Scheduler::admit(LiveRequest& r, StepPlan& plan) {
  if (n_running() == config_.max_num_seqs) return false;
  const bool reserve = config_.admission == Admission::reserve;
  const auto lease =
      kv_.admit(r.text, reserve ? r.positions_at_most() : std::ssize(r.text));
  if (!lease) return false;
  waiting_.erase(&r);
  running_.insert(&r);
  r.phase = RequestPhase::running;
  r.sequence = lease->sequence;
  r.computed = lease->cached;
  r.cached += lease->cached;
  r.stays.push_back({lease->sequence, now_s_, now_s_});
  ++plan.n_admitted;
  return true;
}

/// Its tokens stay, its keys and values go. It keeps its place in the order.
void Scheduler::preempt(LiveRequest& r, StepPlan& plan) {
  leave(r);
  r.phase = RequestPhase::waiting;
  waiting_.insert(&r);
  ++r.preemptions;
  ++plan.n_preempted;
}
// [endregion]

/// As if it had never been admitted.
void Scheduler::turn_back(LiveRequest& r) {
  r.cached -= r.computed;
  r.computed = 0;
  leave(r);
  r.stays.pop_back();
  r.phase = RequestPhase::waiting;
  waiting_.insert(&r);
}

void Scheduler::leave(LiveRequest& r) {
  kv_.release(r.sequence);
  running_.erase(&r);
  r.stays.back().end_s = now_s_;
  r.seen = std::max(r.seen, r.computed);
  r.computed = 0;
  r.sequence = -1;
}

void Scheduler::add_piece(LiveRequest& r, std::int64_t count, StepPlan& plan) const {
  plan.pieces.push_back({&r, count});
  plan.n_tokens += count;
}

// ----- steps

StepPlan Scheduler::plan(double now_s) {
  now_s_ = now_s;
  return config_.interleave == Interleave::mixed ? plan_mixed() : plan_separate();
}

void Scheduler::computed(const StepPlan& plan) {
  for (const auto& [r, count] : plan.pieces) {
    r->recomputed += std::clamp<std::int64_t>(r->seen - r->computed, 0, count);
    r->computed += count;
    kv_.stored(r->sequence, std::span(r->text).first(std::size_t(r->computed)));
  }
}

// [region add_decodes]
/// The next token of every request that has one to feed, as far as memory goes.
void Scheduler::add_decodes(StepPlan& plan) {
  for (auto next = running_.begin(); next != running_.end();) {
    LiveRequest& r = **next;
    ++plan.n_visited;
    if (r.is_decoding()) {
      while (!kv_.grow(r.sequence, std::ssize(r.text))) {
        LiveRequest& victim = **running_.rbegin();  // r itself, if none comes after it
        preempt(victim, plan);
        if (&victim == &r) return;
      }
      add_piece(r, 1, plan);
      ++plan.n_decodes;
    }
    ++next;
  }
}
// [endregion]

}  // namespace lab
