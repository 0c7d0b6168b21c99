// Mixed steps: decodes, and prompts in what the token budget leaves.
#include <algorithm>

#include "lab/batching/scheduler.hpp"

namespace lab {

// [region plan_mixed]
StepPlan Scheduler::plan_mixed() {
  StepPlan plan;
  if (config_.preempt_for_order) displace(plan);
  add_decodes(plan);
  add_prompts(plan);
  return plan;
}
// [endregion]

// [region prompt_piece]
/// @return how many of `gap` tokens the step takes; 0: it has no room for any
std::int64_t Scheduler::prompt_piece(std::int64_t gap, const StepPlan& plan) const {
  const std::int64_t left = config_.max_num_batched_tokens - plan.n_tokens;
  if (!config_.chunked_prefill) return gap <= left ? gap : 0;
  const std::int64_t most = config_.prefill_chunk > 0 ? config_.prefill_chunk : gap;
  return std::min({gap, most, left});
}
// [endregion]

// [region add_prompts]
/// Texts of running and of waiting requests, in one order: an urgent newcomer need not wait
/// until a long prompt that came before it is through. At the first one that does not fit,
/// nobody behind it gets in, or a large request would wait for ever.
void Scheduler::add_prompts(StepPlan& plan) {
  bool admitting = plan.n_preempted == 0;  // memory is short; do not make it shorter
  auto started = running_.begin();
  for (;;) {
    while (started != running_.end() && (*started)->is_decoding()) ++started;
    const bool has_started = started != running_.end();
    LiveRequest* r = has_started ? *started : nullptr;
    if (admitting && !waiting_.empty() && n_running() < config_.max_num_seqs &&
        (!has_started || GoesBefore()(*waiting_.begin(), r)))
      r = *waiting_.begin();
    if (!r) return;
    ++plan.n_visited;

    const bool is_new = r->phase == RequestPhase::waiting;
    const std::int64_t gap =
        is_new ? std::ssize(r->text) - kv_.cached_prefix(r->text) : r->gap();
    const std::int64_t count = prompt_piece(gap, plan);
    if (count == 0) return;
    if (is_new && !admit(*r, plan)) {
      admitting = false;
      continue;
    }
    add_piece(*r, count, plan);
    if (!is_new) ++started;
  }
}
// [endregion]

// [region displace]
/// No request waits while one that comes after it runs. The order is total and fixed, so
/// two requests can never push each other out in turn.
void Scheduler::displace(StepPlan& plan) {
  const auto goes_before_last = [&](LiveRequest& r) {
    ++plan.n_visited;
    return !running_.empty() && GoesBefore()(&r, *running_.rbegin());
  };
  while (!waiting_.empty() && goes_before_last(**waiting_.begin())) {
    LiveRequest& first = **waiting_.begin();
    while (!admit(first, plan)) {
      if (!goes_before_last(first)) return;
      preempt(**running_.rbegin(), plan);
    }
  }
}
// [endregion]

}  // namespace lab
