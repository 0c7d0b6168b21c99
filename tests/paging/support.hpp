/// @file
/// A model whose keys are the texts they depend on, so that a wrong block is noticed.
#pragma once

#include <map>
#include <set>

#include "batching/support.hpp"
#include "lab/paging/block_manager.hpp"
#include "lab/paging/paged_kv_space.hpp"
#include "support/message_of.hpp"

namespace lab::test {

/// What a slot holds: a key depends on all tokens up to its own.
inline std::uint64_t key_of(std::span<const std::int32_t> text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::int32_t id : text) h = (h ^ std::uint64_t(id)) * 0x100000001b3u;
  return h;
}

/// The memory behind a BlockManager, as keys. Throws std::logic_error, which no engine
/// catches, when a read finds another text's key or a write goes to a shared block.
class KeyMemory {
 public:
  explicit KeyMemory(const BlockManager& manager)
      : manager_(manager), keys_(std::size_t(manager.n_blocks() * manager.block_size())) {}

  void copy(std::span<const BlockCopy> copies) {
    const std::int64_t size = manager_.block_size();
    for (const auto& [from, to] : copies)
      std::copy_n(keys_.begin() + from * size, size, keys_.begin() + to * size);
  }
  /// Reads positions [0, length) of a sequence, then writes up to text.size().
  void forward(std::int64_t sequence, std::span<const std::int32_t> text,
               std::int64_t length) {
    for (std::int64_t p = 0; p < std::ssize(text); ++p) {
      const std::uint64_t key = key_of(text.first(std::size_t(p) + 1));
      const std::int32_t block = block_of(sequence, p);
      std::uint64_t& slot =
          keys_[std::size_t(block * manager_.block_size() + p % manager_.block_size())];
      if (p < length) {
        if (slot != key) fault("a slot holds another text's key");
      } else {
        if (manager_.pool().references(block) != 1) fault("a write to a shared block");
        slot = key;
      }
    }
  }

 private:
  [[noreturn]] static void fault(const std::string& what) {
    throw std::logic_error("paging fault: " + what);
  }
  std::int32_t block_of(std::int64_t sequence, std::int64_t position) const {
    const auto blocks = manager_.blocks(sequence);
    const auto i = std::size_t(position / manager_.block_size());
    if (i >= blocks.size()) fault("a position without a block");
    return blocks[i];
  }
  const BlockManager& manager_;
  std::vector<std::uint64_t> keys_;  // by slot
};

/// A model that reads and writes a KeyMemory; its tokens are the StrictModel's.
class PagedModel final : public ModelRunner {
 public:
  PagedModel(VirtualClock& clock, BlockManager& manager, std::int64_t context = 1 << 20)
      : clock_(clock), manager_(manager), memory_(manager), context_(context) {}

  std::int64_t context_length() const override { return context_; }
  std::int64_t vocab_size() const override { return StrictModel::kVocab; }
  bool is_end(std::int32_t token) const override { return token == StrictModel::kEnd; }

  std::vector<StepToken> run(const StepInput& input) override {
    clock_.advance(1);
    memory_.copy(manager_.take_copies());
    std::vector<StepToken> tokens;
    for (std::size_t i = 0; i < input.rows.size(); ++i) {
      const Segment& s = input.batch.segments()[i];
      const StepRow& row = input.rows[i];
      if (s.position != manager_.length(s.sequence))
        throw std::logic_error("paging fault: a gap or an overlap of positions");
      n_tokens += s.count;
      memory_.forward(s.sequence, row.text.first(std::size_t(s.position + s.count)),
                      s.position);
      tokens.push_back(row.sampler ? StepToken{row.sampler->sample(
                                         StrictModel::logits(row.text), row.text)}
                                   : StepToken{});
    }
    return tokens;
  }
  std::int64_t n_tokens = 0;  ///< computed

 private:
  VirtualClock& clock_;
  BlockManager& manager_;
  KeyMemory memory_;
  std::int64_t context_;
};

/// An engine on blocks with a PagedModel.
struct PagedBench {
  PagedBench(const BlockManagerConfig& blocks, const SchedulerConfig& config,
             Policy policy = first_come_first_served(), std::int64_t context = 1 << 20,
             double watermark = 0)
      : manager(blocks),
        model(clock, manager, context),
        kv(manager, watermark),
        engine(model, kv, clock, config, std::move(policy)) {}

  bool step() {
    const auto record = engine.step();
    for (RequestResult& r : engine.take_ended()) results[r.request.id] = std::move(r);
    if (record) n_preempted += record->n_preempted;
    return record.has_value();
  }
  void run() {
    while (engine.busy()) step();
    step();
  }

  VirtualClock clock;
  BlockManager manager;
  PagedModel model;
  PagedKvSpace kv;
  Engine engine;
  std::map<std::int64_t, RequestResult> results;  // by id
  std::int64_t n_preempted = 0;
};

/// Every block is counted once: owned, or in the free queue; and its owners are as many as
/// the tables that name it.
inline void check_blocks(const BlockManager& m, std::span<const std::int64_t> sequences) {
  std::map<std::int32_t, std::int64_t> owners;
  for (const std::int64_t s : sequences) {
    REQUIRE(m.length(s) <= std::ssize(m.blocks(s)) * m.block_size());
    std::set<std::int32_t> distinct;
    for (const std::int32_t b : m.blocks(s)) {
      ++owners[b];
      REQUIRE(distinct.insert(b).second);
    }
  }
  std::int64_t free = 0;
  for (std::int32_t b = 0; b < m.n_blocks(); ++b) {
    REQUIRE(m.pool().references(b) == owners[b]);
    free += owners[b] == 0;
  }
  REQUIRE(m.n_free() == free);
}

inline std::vector<std::int32_t> tokens_from(std::int32_t first, std::int64_t n) {
  std::vector<std::int32_t> t;
  for (std::int64_t i = 0; i < n; ++i) t.push_back(std::int32_t(first + i));
  return t;
}

}  // namespace lab::test
