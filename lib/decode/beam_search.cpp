#include "lab/decode/beam_search.hpp"

#include <algorithm>
#include <cmath>

#include "lab/core/error.hpp"
#include "lab/decode/shared_prefill.hpp"

namespace lab {
namespace {

/// A beginning of an answer.
struct Live {
  std::int64_t sequence;
  std::vector<std::int32_t> text;  // prompt and answer
  double log_probability;
};

/// One more token for one of the beams.
struct Step {
  std::size_t beam;
  std::int32_t token;
  double log_probability;
};

void check(const BeamOptions& o) {
  LAB_CHECK(o.beam_width >= 1, "beam_width is {}; give a number >= 1", o.beam_width);
  LAB_CHECK(o.max_tokens >= 1, "max-tokens is {}; give a number >= 1", o.max_tokens);
  LAB_CHECK(std::isfinite(o.length_penalty), "length_penalty is {}; give a finite number",
            o.length_penalty);
}

/// The `n` most likely tokens after `beam`.
void add_steps(std::vector<Step>& steps, std::size_t beam, double so_far,
               std::span<const float> logits, std::int64_t n) {
  double largest = -INFINITY, sum = 0;
  for (const float x : logits) {
    LAB_CHECK(!std::isnan(x),
              "beam search: a logit is NaN; the model's weights are broken");
    largest = std::max(largest, double(x));
  }
  LAB_CHECK(std::isfinite(largest), "beam search: no logit is finite");
  for (const float x : logits) sum += std::exp(double(x) - largest);
  std::vector<std::int32_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int32_t(i);
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(n, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = logits[std::size_t(a)], y = logits[std::size_t(b)];
    return x > y || (x == y && a < b);
  });
  for (auto id = ids.begin(); id != end; ++id)
    steps.push_back(
        {beam, *id, so_far + double(logits[std::size_t(*id)]) - largest - std::log(sum)});
}

/// The search's state between steps.
class Search {
 public:
  Search(Model& model, SequenceStore& store, const std::vector<std::int32_t>& prompt,
         const BeamOptions& options)
      : model_(model), store_(store), prompt_(std::ssize(prompt)), options_(options) {}

  /// Takes the best steps: those to an end token become answers, the others live on.
  void advance(const std::vector<Step>& steps) {
    std::vector<Step> chosen;
    for (std::size_t rank = 0; rank < steps.size(); ++rank) {
      const Step& s = steps[rank];
      if (std::ssize(chosen) == options_.beam_width) break;
      if (!options_.ignore_end && model_.tokenizer().is_end(s.token)) {
        // One that is not among the best would not have been kept.
        if (std::int64_t(rank) < options_.beam_width)
          keep(live_[s.beam], s, FinishReason::stop);
      } else {
        chosen.push_back(s);
      }
    }
    branch(chosen);
    if (!live_.empty() && (length() == options_.max_tokens ||
                           prompt_ + length() > model_.config().context_length))
      end_all();
    else if (finished())
      drop_all();
  }

  /// The first live beam holds the prompt.
  void start(std::int64_t sequence, const std::vector<std::int32_t>& prompt) {
    live_.push_back({sequence, prompt, 0});
  }
  const std::vector<Live>& live() const { return live_; }
  std::vector<Beam> take() { return std::move(ended_); }

 private:
  std::int64_t length() const { return std::ssize(live_.front().text) - prompt_; }

  double score(double log_probability, std::int64_t n) const {
    return log_probability / std::pow(double(n), options_.length_penalty);
  }

  void keep(const Live& from, const Step& last, FinishReason reason) {
    Beam b{{from.text.begin() + prompt_, from.text.end()}, last.log_probability, 0, reason};
    b.ids.push_back(last.token);
    add(std::move(b));
  }

  void add(Beam b) {
    b.score = score(b.log_probability, std::ssize(b.ids));
    const auto before = std::find_if(ended_.begin(), ended_.end(), [&](const Beam& other) {
      return other.score < b.score;
    });
    ended_.insert(before, std::move(b));
    if (std::ssize(ended_) > options_.beam_width) ended_.pop_back();
  }

  /// The beams of the next step. The first step that goes on from a beam keeps its
  /// sequence, the others fork it; what nobody goes on from is closed.
  void branch(const std::vector<Step>& chosen) {
    std::vector<std::int64_t> heirs(live_.size(), 0);
    std::vector<Live> next;
    for (const Step& s : chosen) {
      const Live& from = live_[s.beam];
      const std::int64_t sequence =
          heirs[s.beam]++ == 0 ? from.sequence : store_.fork(from.sequence);
      next.push_back({sequence, from.text, s.log_probability});
      next.back().text.push_back(s.token);
    }
    for (std::size_t i = 0; i < live_.size(); ++i)
      if (heirs[i] == 0) store_.close(live_[i].sequence);
    live_ = std::move(next);
  }

  bool finished() const {
    if (live_.empty()) return true;
    if (std::ssize(ended_) < options_.beam_width) return false;
    double best = -INFINITY;
    for (const Live& l : live_) best = std::max(best, score(l.log_probability, length()));
    return options_.early_stopping || !(best > ended_.back().score);
  }
  void drop_all() {
    for (const Live& l : live_) store_.close(l.sequence);
    live_.clear();
  }
  void end_all() {
    for (const Live& l : live_)
      add({{l.text.begin() + prompt_, l.text.end()},
           l.log_probability,
           0,
           FinishReason::length});
    drop_all();
  }

  Model& model_;
  SequenceStore& store_;
  std::int64_t prompt_;  // tokens
  BeamOptions options_;
  std::vector<Live> live_;
  std::vector<Beam> ended_;  // best first
};

void sort(std::vector<Step>& steps) {
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.log_probability > b.log_probability;
  });
}

}  // namespace

// [region search]
std::vector<Beam> beam_search(Model& model, SequenceStore& store,
                              const std::vector<std::int32_t>& prompt,
                              const BeamOptions& options) {
  check(options);
  // Twice the width, since up to half of them may be end tokens.
  const std::int64_t candidates = 2 * options.beam_width;
  const auto n_ids = std::size_t(model.tokenizer().size());
  SharedPrefill shared(model, store, prompt, options.prefill_chunk);
  Search search(model, store, prompt, options);
  search.start(shared.take(), prompt);
  shared.done();
  std::vector<Step> steps;
  add_steps(steps, 0, 0, shared.logits().first(n_ids), candidates);
  search.advance(steps);
  while (!search.live().empty()) {
    ForwardBatch batch;
    for (const Live& l : search.live()) add_gap(batch, store, l.sequence, l.text);
    const auto logits = model.transformer().forward(batch, store.cache());
    steps.clear();
    for (std::size_t i = 0; i < search.live().size(); ++i) {
      const Live& l = search.live()[i];
      store.stored(l.sequence, l.text);
      add_steps(steps, i, l.log_probability, row_of(logits, i).first(n_ids), candidates);
    }
    sort(steps);
    search.advance(steps);
  }
  return search.take();
}
// [endregion]

}  // namespace lab
