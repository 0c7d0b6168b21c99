/// @file
/// What runs a step: the model, or something that only takes as long as one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lab/batching/clock.hpp"
#include "lab/decode/sampler.hpp"
#include "lab/model/model.hpp"

namespace lab {

/// The request behind one segment of a batch.
struct StepRow {
  std::int64_t request = 0;
  std::span<const std::int32_t> text;  ///< prompt and answer so far
  Sampler* sampler = nullptr;  ///< null: the text goes on in a later step, nothing is drawn
};

/// A step as the model sees it.
struct StepInput {
  ForwardBatch batch;         ///< asks for one logit row for each row with a sampler
  std::vector<StepRow> rows;  ///< one for each segment of the batch
  std::int64_t padding = 0;   ///< see StepPlan
};

/// What a row got.
struct StepToken {
  std::int32_t token = -1;
  std::string error = {};  ///< not empty: this request cannot go on; the others can
};

/// The seam between the engine and the model.
class ModelRunner {
 public:
  ModelRunner() = default;
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;
  virtual ~ModelRunner() = default;

  virtual std::int64_t context_length() const = 0;  ///< positions of one sequence
  virtual std::int64_t vocab_size() const = 0;      ///< tokens are 0 to vocab_size() - 1
  virtual bool is_end(std::int32_t token) const = 0;

  /// Runs the batch.
  /// @return one value for each row; those of rows without a sampler mean nothing
  /// @throws Error if the batch as a whole cannot run
  virtual std::vector<StepToken> run(const StepInput& input) = 0;
};

/// A Transformer and its KV cache. A flat batch needs no padding, so none is computed.
class TransformerRunner final : public ModelRunner {
 public:
  /// @param model, cache  must outlive it
  TransformerRunner(Model& model, KvCache& cache) : model_(model), cache_(cache) {}

  std::int64_t context_length() const override { return model_.config().context_length; }
  std::int64_t vocab_size() const override { return model_.config().vocab_size; }
  bool is_end(std::int32_t token) const override {
    return model_.tokenizer().is_end(token);
  }
  std::vector<StepToken> run(const StepInput& input) override;

 private:
  Model& model_;
  KvCache& cache_;
};

/// What a step of a model takes, as a straight line: step_s for reading the weights, which
/// does not depend on the batch, token_s for each token's arithmetic, and kv_s for each
/// position that attention reads.
struct StepCost {
  double step_s = 5e-3, token_s = 0.1e-3, kv_s = 0;
  double seconds(const StepInput& input) const;
};

/// Takes a model's place in experiments: tokens follow from the text alone, and running a
/// step takes no time but the virtual clock's.
class SimulatedModel final : public ModelRunner {
 public:
  /// @param clock       advanced by each step; must outlive it
  /// @param vocab_size  tokens are 0 to vocab_size - 1; none of them ends an answer
  SimulatedModel(VirtualClock& clock, const StepCost& cost,
                 std::int64_t context_length = 4096, std::int64_t vocab_size = 256);

  std::int64_t context_length() const override { return context_length_; }
  std::int64_t vocab_size() const override { return vocab_size_; }
  bool is_end(std::int32_t) const override { return false; }
  std::vector<StepToken> run(const StepInput& input) override;

 private:
  VirtualClock& clock_;
  StepCost cost_;
  std::int64_t context_length_, vocab_size_;
};

}  // namespace lab
