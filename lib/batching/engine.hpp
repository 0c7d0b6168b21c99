/// @file
/// Continuous batching: submit requests at any time, and step.
#pragma once

#include <optional>
#include <utility>

#include "lab/batching/model_runner.hpp"
#include "lab/batching/scheduler.hpp"

namespace lab {

/// One step as it went.
struct StepRecord {
  double begin_s = 0, end_s = 0;
  std::int64_t n_tokens = 0, n_decodes = 0, padding = 0;  ///< see StepPlan
  std::int64_t n_admitted = 0, n_preempted = 0, n_visited = 0;
  std::int64_t n_running = 0, n_waiting = 0;  ///< during the step
  std::int64_t kv_held = 0, kv_stored = 0;    ///< positions: given out, and filled
};

/// A scheduler, a model and a clock. Every request gets the tokens that it would get alone.
///
/// One thread at a time may use it. Callbacks run inside step().
class Engine {
 public:
  /// @param runner, kv, clock  must outlive it
  Engine(ModelRunner& runner, KvSpace& kv, Clock& clock, const SchedulerConfig& config,
         Policy policy = first_come_first_served());

  /// @throws Error as Scheduler::submit, or for a token outside the vocabulary: it would
  ///         fail the step, and with it all who share the step
  void submit(Request request, OnToken on_token = {});

  /// Ends a request, waiting or running, and frees what it holds at once.
  /// @return false, and nothing happens, if there is none with this id any more
  bool abort(std::int64_t id);

  /// Runs one forward pass. @return nothing if there is no request
  std::optional<StepRecord> step();

  /// Requests that ended since the last call, in that order.
  std::vector<RequestResult> take_ended() { return std::exchange(ended_, {}); }

  bool busy() const { return scheduler_.busy(); }
  const Scheduler& scheduler() const { return scheduler_; }
  Clock& clock() const { return clock_; }

 private:
  /// The one request, not another that has been given its id since.
  struct Recipient {
    std::int64_t id, submission;
  };
  StepInput make_input(const StepPlan& plan) const;
  LiveRequest* find(const Recipient& to) const;
  void deliver(const Recipient& to, const StepToken& token, double now_s);
  void end(std::int64_t id, RequestEnd end, double now_s, std::string error = {});

  ModelRunner& runner_;
  KvSpace& kv_;
  Clock& clock_;
  Scheduler scheduler_;
  std::vector<RequestResult> ended_;
};

}  // namespace lab
