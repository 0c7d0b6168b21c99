#include "lab/batching/engine.hpp"

#include "lab/core/error.hpp"

namespace lab {
namespace {

/// Request metrics count from their own arrival, whatever clock the engine goes by.
RequestMetrics::Clock::time_point metric_time(const LiveRequest& r, double now_s) {
  return r.metrics.arrival() +
         std::chrono::duration_cast<RequestMetrics::Clock::duration>(
             std::chrono::duration<double>(now_s - *r.request.arrival_s));
}

StepRecord describe(const StepPlan& plan, const Scheduler& scheduler, const KvSpace& kv) {
  StepRecord record;
  record.n_tokens = plan.n_tokens;
  record.n_decodes = plan.n_decodes;
  record.padding = plan.padding;
  record.n_admitted = plan.n_admitted;
  record.n_preempted = plan.n_preempted;
  record.n_visited = plan.n_visited;
  record.n_running = scheduler.n_running();
  record.n_waiting = scheduler.n_waiting();
  record.kv_held = kv.held();
  for (const LiveRequest* r : scheduler.running()) record.kv_stored += r->computed;
  record.kv_stored += plan.n_tokens;
  return record;
}

}  // namespace

Engine::Engine(ModelRunner& runner, KvSpace& kv, Clock& clock,
               const SchedulerConfig& config, Policy policy)
    : runner_(runner),
      kv_(kv),
      clock_(clock),
      scheduler_(config, std::move(policy), kv, runner.context_length()) {}

void Engine::submit(Request request, OnToken on_token) {
  for (const std::int32_t token : request.prompt)
    LAB_CHECK(
        token >= 0 && token < runner_.vocab_size(),
        "request {}: token id {} is outside the vocabulary of {}; use the model's own "
        "tokenizer",
        request.id, token, runner_.vocab_size());
  scheduler_.submit(std::move(request), clock_.now_s(), std::move(on_token));
}

bool Engine::abort(std::int64_t id) {
  if (!scheduler_.find(id)) return false;
  end(id, RequestEnd::aborted, clock_.now_s());
  return true;
}

// [region step]
std::optional<StepRecord> Engine::step() {
  if (!scheduler_.busy()) return {};
  const double begin_s = clock_.now_s();
  const StepPlan plan = scheduler_.plan(begin_s);
  LAB_CHECK(
      !plan.pieces.empty(),
      "engine: {} requests wait and none can be scheduled; the KV space promised more "
      "than it gives",
      scheduler_.n_waiting());
  StepRecord record = describe(plan, scheduler_, kv_);
  const StepInput input = make_input(plan);
  std::vector<Recipient> recipients;  // a callback may end any request of the step
  for (const Piece& piece : plan.pieces)
    recipients.push_back({piece.request->request.id, piece.request->submission});

  std::vector<StepToken> tokens;
  try {
    tokens = runner_.run(input);
    scheduler_.computed(plan);
  } catch (const Error& error) {  // nobody knows what the cache holds for these now
    tokens.assign(input.rows.size(), {-1, error.what()});
  }
  record.begin_s = begin_s;
  record.end_s = clock_.now_s();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (input.rows[i].sampler || !tokens[i].error.empty())
      deliver(recipients[i], tokens[i], record.end_s);
  return record;
}
// [endregion]

StepInput Engine::make_input(const StepPlan& plan) const {
  StepInput input;
  input.padding = plan.padding;
  for (const Piece& piece : plan.pieces) {
    LiveRequest& r = *piece.request;
    const std::span<const std::int32_t> text = r.text;
    const auto tokens = text.subspan(std::size_t(r.computed), std::size_t(piece.count));
    if (piece.completes())
      input.batch.add(r.sequence, r.computed, tokens);
    else
      input.batch.add_without_logits(r.sequence, r.computed, tokens);
    input.rows.push_back({r.request.id, text, piece.completes() ? &r.sampler : nullptr});
  }
  return input;
}

void Engine::deliver(const Recipient& to, const StepToken& token, double now_s) {
  LiveRequest* r = find(to);
  if (!r) return;
  if (!token.error.empty()) return end(to.id, RequestEnd::failed, now_s, token.error);
  r->text.push_back(token.token);
  r->metrics.token_at(metric_time(*r, now_s));
  TokenEvent event{to.id, r->n_generated() - 1, token.token, {}};
  if (!r->request.ignore_end && runner_.is_end(token.token))
    event.end = RequestEnd::stop;
  else if (r->n_generated() == r->request.max_tokens)
    event.end = RequestEnd::length;

  const OnToken on_token = r->on_token;  // a copy: it may abort its own request
  if (event.end) end(to.id, *event.end, now_s);
  if (!on_token) return;
  try {
    on_token(event);
  } catch (const std::exception& error) {
    if (find(to)) end(to.id, RequestEnd::failed, now_s, error.what());
  }
}

LiveRequest* Engine::find(const Recipient& to) const {
  LiveRequest* r = scheduler_.find(to.id);
  return r && r->submission == to.submission ? r : nullptr;
}

void Engine::end(std::int64_t id, RequestEnd how, double now_s, std::string error) {
  const auto r = scheduler_.remove(id, now_s);
  RequestResult result{r->request, {r->text.end() - r->n_generated(), r->text.end()},
                       how,        std::move(error),
                       r->metrics, r->stays};
  const double started_s = result.stays.empty() ? now_s : result.stays.front().begin_s;
  result.queue_s = started_s - *result.request.arrival_s;
  result.preemptions = r->preemptions;
  result.recomputed_tokens = r->recomputed;
  result.cached_tokens = r->cached;
  ended_.push_back(std::move(result));
}

}  // namespace lab
