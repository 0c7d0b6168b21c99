// Separate steps, as TGI takes them: prompts of new requests, or decodes; and static
// batches.
#include <algorithm>
#include <cmath>

#include "lab/batching/scheduler.hpp"

namespace lab {

// [region plan_separate]
StepPlan Scheduler::plan_separate() {
  StepPlan plan;
  const bool had_running = n_running() > 0;
  if (!(decode_is_due_ && had_running) && onboard(plan)) {
    waiting_tokens_ = 1;
    decode_is_due_ = had_running;
    return plan;
  }
  add_decodes(plan);
  ++waiting_tokens_;
  decode_is_due_ = false;
  if (config_.interleave == Interleave::static_batches)
    plan.padding = batch_size_ - plan.n_tokens;  // those that are done go on, for nothing
  return plan;
}
// [endregion]

// [region least_onboard]
/// @return the fewest new requests that are worth a prefill, for which all others wait
std::int64_t Scheduler::least_onboard() const {
  if (waiting_tokens_ >= config_.max_waiting_tokens) return 0;
  const double least =
      std::floor(static_cast<double>(n_running()) * config_.waiting_served_ratio);
  return static_cast<std::int64_t>(
      std::min(least, static_cast<double>(config_.max_num_seqs) + 1));
}
// [endregion]

// [region onboard]
/// Takes new requests in, from the front, up to the first that does not fit. Too few, and
/// all go back to where they were.
bool Scheduler::onboard(StepPlan& plan) {
  const bool is_static = config_.interleave == Interleave::static_batches;
  if (is_static && n_running() > 0) return false;
  const std::int64_t least = n_running() > 0 ? least_onboard() : 0;
  if (n_waiting() < least) return false;

  StepPlan onboarded;
  std::int64_t longest = 0, sum = 0;
  while (!waiting_.empty()) {
    LiveRequest& r = **waiting_.begin();
    ++plan.n_visited;
    const std::int64_t gap = std::ssize(r.text) - kv_.cached_prefix(r.text);
    const std::int64_t n = std::ssize(onboarded.pieces) + 1;
    const std::int64_t tokens =  // a padded batch is as wide as its longest prompt
        is_static ? n * std::max(longest, gap) : sum + gap;
    if (tokens > config_.max_num_batched_tokens || !admit(r, onboarded)) break;
    longest = std::max(longest, gap);
    sum += gap;
    add_piece(r, r.gap(), onboarded);
  }
  const std::int64_t n = std::ssize(onboarded.pieces);
  if (n == 0 || n < least) {
    for (const Piece& piece : onboarded.pieces) turn_back(*piece.request);
    return false;
  }
  onboarded.n_visited = plan.n_visited;
  plan = std::move(onboarded);
  if (is_static) {
    batch_size_ = n;
    plan.padding = n * longest - plan.n_tokens;
  }
  return true;
}
// [endregion]

}  // namespace lab
