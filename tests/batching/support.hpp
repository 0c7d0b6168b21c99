/// @file
/// A model that notices what a scheduler can get wrong, and schedules written as text.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lab/batching/engine.hpp"
#include "lab/core/error.hpp"
#include "lab/core/rng.hpp"
#include "support/catch.hpp"

namespace lab::test {

/// Keeps what a KV cache would keep of each sequence, and throws std::logic_error, which no
/// engine catches, if a step does not go on exactly where the last one ended. Its logits
/// follow from the whole text, so one wrong or missing token changes all that come after.
class StrictModel final : public ModelRunner {
 public:
  static constexpr std::int32_t kEnd = 0, kVocab = 16;

  explicit StrictModel(VirtualClock& clock, std::int64_t context = 1 << 20)
      : clock_(clock), context_(context) {}

  std::int64_t context_length() const override { return context_; }
  std::int64_t vocab_size() const override { return kVocab; }
  bool is_end(std::int32_t token) const override { return token == kEnd; }

  static std::vector<float> logits(std::span<const std::int32_t> text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::int32_t id : text) hash = (hash ^ std::uint64_t(id)) * 0x100000001b3u;
    Rng rng(hash);
    std::vector<float> out(kVocab);
    for (float& v : out) v = rng.uniform(-3, 3);
    return out;
  }

  std::vector<StepToken> run(const StepInput& input) override {
    clock_.advance(1);
    last_step.clear();
    ++n_steps;
    const auto& segments = input.batch.segments();
    if (segments.size() != input.rows.size()) fault("rows and segments differ in number");
    if (std::ssize(input.batch.logit_tokens()) !=
        std::count_if(input.rows.begin(), input.rows.end(),
                      [](const StepRow& row) { return row.sampler != nullptr; }))
      fault("logits are asked for that nothing is drawn from, or too few");
    std::vector<StepToken> tokens;
    for (std::size_t i = 0; i < segments.size(); ++i)
      tokens.push_back(run_segment(input, segments[i], input.rows[i]));
    if (fail_next) {
      fail_next = false;
      throw Error("the device is lost");
    }
    return tokens;
  }

  std::string last_step;  ///< as "1x4 2x1*": request x tokens, * draws a token
  std::int64_t n_steps = 0;
  bool fail_next = false;          ///< the next step as a whole
  std::int64_t fail_request = -1;  ///< this request's next token
  bool has_prefix_cache = false;   ///< sequences may begin at another position than 0

 private:
  struct Stored {
    std::int64_t request = -1;
    std::vector<std::int32_t> text;
  };

  [[noreturn]] static void fault(const std::string& what) {
    throw std::logic_error("scheduler fault: " + what);
  }

  StepToken run_segment(const StepInput& input, const Segment& s, const StepRow& row) {
    Stored& stored = stored_[s.sequence];
    const auto end = s.position + s.count;
    if (end > std::ssize(row.text)) fault("tokens that the text does not have");
    if (s.position == 0 || stored.request != row.request) {
      if (s.position != 0 && !has_prefix_cache) fault("a new sequence does not begin at 0");
      stored = {row.request, {row.text.begin(), row.text.begin() + s.position}};
    }
    if (std::ssize(stored.text) != s.position) fault("a gap or an overlap of positions");
    for (std::int64_t t = 0; t < s.count; ++t) {
      stored.text.push_back(input.batch.tokens()[std::size_t(s.begin + t)]);
      if (input.batch.positions()[std::size_t(s.begin + t)] != s.position + t)
        fault("positions do not rise by one");
    }
    if (!std::equal(stored.text.begin(), stored.text.end(), row.text.begin()))
      fault("what is stored is not the text");
    const bool complete = end == std::ssize(row.text);
    if (complete != (row.sampler != nullptr))
      fault(complete ? "a complete text draws no token" : "an incomplete text draws one");
    if (!last_step.empty()) last_step += ' ';
    last_step += fmt::format("{}x{}{}", row.request, s.count, complete ? "*" : "");
    if (row.request == fail_request) return {-1, "its logits are NaN"};
    return complete ? StepToken{row.sampler->sample(logits(stored.text), row.text)}
                    : StepToken{};
  }

  VirtualClock& clock_;
  std::int64_t context_;
  std::map<std::int64_t, Stored> stored_;  // by sequence
};

inline Request make_request(std::int64_t id, std::int64_t prompt_tokens,
                            std::int64_t max_tokens) {
  Request r;
  r.id = id;
  for (std::int64_t i = 0; i < prompt_tokens; ++i)
    r.prompt.push_back(static_cast<std::int32_t>(1 + (id * 7 + i * 3) % 15));
  r.max_tokens = max_tokens;
  r.ignore_end = true;
  return r;
}

/// What a StrictModel answers if nobody else is there.
inline std::vector<std::int32_t> solo(const Request& r, std::int64_t context = 1 << 20) {
  std::vector<std::int32_t> text = r.prompt, ids;
  Sampler sampler(r.sampling);
  while (std::ssize(ids) < r.max_tokens && std::ssize(text) <= context) {
    ids.push_back(sampler.sample(StrictModel::logits(text), text));
    text.push_back(ids.back());
    if (!r.ignore_end && ids.back() == StrictModel::kEnd) break;
  }
  return ids;
}

/// An engine with a strict model in virtual time, one second a step.
struct Bench {
  explicit Bench(const SchedulerConfig& config,
                 std::unique_ptr<KvSpace> space = std::make_unique<PooledKvSpace>(100000),
                 Policy policy = first_come_first_served(), std::int64_t context = 1 << 20)
      : model(clock, context),
        kv(std::move(space)),
        engine(model, *kv, clock, config, std::move(policy)) {}

  /// One step, as text; "" if there was nothing to do.
  std::string step() {
    const auto record = engine.step();
    if (record) records.push_back(*record);
    for (RequestResult& r : engine.take_ended()) results[r.request.id] = std::move(r);
    return record ? model.last_step : "";
  }
  /// Steps until nothing is left.
  std::vector<std::string> steps() {
    std::vector<std::string> out;
    while (engine.busy()) out.push_back(step());
    return out;
  }

  VirtualClock clock;
  StrictModel model;
  std::unique_ptr<KvSpace> kv;
  Engine engine;
  std::vector<StepRecord> records;
  std::map<std::int64_t, RequestResult> results;  // by id
};

using Steps = std::vector<std::string>;

}  // namespace lab::test
