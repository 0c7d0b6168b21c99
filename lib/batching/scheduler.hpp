/// @file
/// Decides, before every forward pass anew, which tokens of which requests are in it.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "lab/batching/kv_space.hpp"
#include "lab/batching/live_request.hpp"
#include "lab/batching/policy.hpp"

namespace lab {

/// What a step is made of.
enum class Interleave {
  /// The next token of every running request, and prompts in what the token budget leaves
  /// (Agrawal et al. 2024, arXiv:2403.02310, section 4; vLLM). Nobody waits for a prompt.
  mixed,
  /// Either prompts of new requests, or the next token of every running one (TGI). New
  /// requests are taken in when enough wait: waiting_served_ratio, max_waiting_tokens.
  separate,
  /// As separate, but new requests are taken in only when none runs: a batch ends with its
  /// longest answer. What batching was before Yu et al. 2022 (Orca, OSDI '22).
  static_batches
};

/// How much memory a request must find before it starts.
enum class Admission {
  /// All that it may ever need. What has started is never interrupted (TGI).
  reserve,
  /// Its text so far. When memory runs out, the last in the order gives all of its memory
  /// back, waits, and computes its text again later (vLLM's recomputation).
  on_demand
};

/// The knobs, with the names that engines give them.
struct SchedulerConfig {
  Interleave interleave = Interleave::mixed;
  Admission admission = Admission::on_demand;
  std::int64_t max_num_seqs = 8;              ///< requests that run at a time
  std::int64_t max_num_batched_tokens = 256;  ///< tokens in one step
  /// Whether a prompt may be spread over steps. Only mixed steps can.
  bool chunked_prefill = true;
  std::int64_t prefill_chunk = 0;  ///< most prompt tokens of one request in a step; 0: all
  /// Whether a waiting request may push out a running one that comes after it. Otherwise
  /// only lack of memory preempts. Needs Admission::on_demand.
  bool preempt_for_order = false;
  /// Separate steps: new requests are taken in if there are at least
  /// floor(running * waiting_served_ratio) that fit. TGI's launcher passes 0.3, its router
  /// alone takes 1.2.
  double waiting_served_ratio = 0.3;
  /// ... or if this many steps have passed since the last time, however few there are.
  std::int64_t max_waiting_tokens = 20;

  /// @throws Error naming the knob, its value and its range, or two knobs that contradict
  ///         each other
  void validate() const;
};

/// Tokens of one request in a step: text[computed, computed + count).
struct Piece {
  LiveRequest* request = nullptr;
  std::int64_t count = 0;
  /// Whether they complete the text, so that the step gives it its next token.
  bool completes() const { return count == request->gap(); }
};

/// One step.
struct StepPlan {
  std::vector<Piece> pieces;  ///< decodes first
  std::int64_t n_tokens = 0, n_decodes = 0;
  std::int64_t padding = 0;  ///< tokens that a padded static batch would compute besides
  std::int64_t n_admitted = 0, n_preempted = 0;
  std::int64_t n_visited = 0;  ///< requests looked at: the work of planning
};

/// Iteration-level scheduling (Orca) with the two schools of each of its decisions.
///
/// Both queues are kept in the policy's order. Because the running requests are served in
/// that order and victims are taken from its end, a victim has never been given tokens in
/// the same step, and nothing that was planned is ever taken back.
class Scheduler {
 public:
  /// @param kv       must outlive the scheduler
  /// @param context  the model's context length
  Scheduler(const SchedulerConfig& config, Policy policy, KvSpace& kv,
            std::int64_t context);

  /// Lets a request wait. A max_tokens beyond the context is cut to it.
  /// @throws Error if it is malformed, its id is in use, or it could never run; nothing has
  ///         changed then
  LiveRequest& submit(Request request, double now_s, OnToken on_token = {});

  /// Chooses the next step and makes room for it. Its pieces are valid until a request is
  /// removed.
  StepPlan plan(double now_s);
  /// The step has been computed.
  void computed(const StepPlan& plan);
  /// Takes a request out, wherever it is, and frees everything it holds.
  /// @return null if there is none with this id
  std::unique_ptr<LiveRequest> remove(std::int64_t id, double now_s);

  LiveRequest* find(std::int64_t id) const;  ///< null if there is none with this id
  std::int64_t n_waiting() const { return std::ssize(waiting_); }
  std::int64_t n_running() const { return std::ssize(running_); }
  bool busy() const { return !live_.empty(); }
  const SchedulerConfig& config() const { return config_; }
  /// Running requests, in order.
  const std::set<LiveRequest*, GoesBefore>& running() const { return running_; }

 private:
  void check_can_run(const Request& request) const;
  bool admit(LiveRequest& r, StepPlan& plan);
  void preempt(LiveRequest& r, StepPlan& plan);
  void turn_back(LiveRequest& r);
  void leave(LiveRequest& r);
  void add_piece(LiveRequest& r, std::int64_t count, StepPlan& plan) const;

  void displace(StepPlan& plan);
  void add_decodes(StepPlan& plan);
  void add_prompts(StepPlan& plan);
  std::int64_t prompt_piece(std::int64_t gap, const StepPlan& plan) const;

  StepPlan plan_mixed();
  StepPlan plan_separate();
  bool onboard(StepPlan& plan);
  std::int64_t least_onboard() const;

  SchedulerConfig config_;
  Policy policy_;
  KvSpace& kv_;
  std::int64_t context_, n_submitted_ = 0;
  double now_s_ = 0;
  std::unordered_map<std::int64_t, std::unique_ptr<LiveRequest>> live_;  // by id
  std::set<LiveRequest*, GoesBefore> waiting_, running_;

  // Of separate steps only.
  std::int64_t waiting_tokens_ = 0;  // steps since new requests were taken in
  bool decode_is_due_ = false;       // running requests wait for one prefill, not for two
  std::int64_t batch_size_ = 0;      // requests that a static batch began with
};

}  // namespace lab
