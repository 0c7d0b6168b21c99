//! # Batching
//! @builds-on 02_kv_cache
//! @time 90
//! @exercise 03_batching
//! @summary Many requests in one forward pass, chosen anew before every step
//! @uses lib/batching/*.cpp
//!
//! Chapter 02 made a decode step small: one token, and all of the weights read for it. A server
//! has many people waiting. This chapter lets them share a step, and then asks the question that
//! most of an inference engine is about: *which* tokens go into the next one?
//!
//! **You will learn to**
//! - say what the tokens of 16 people in one step cost, and read it off a straight line;
//! - compute what a static batch wastes from nothing but the lengths of the answers;
//! - write the loop of a continuous batching engine, with chunked prefill and preemption, and prove
//!   that nobody's answer changed;
//! - turn the knobs of vLLM and TGI knowing who pays: TTFT, ITL, throughput or memory.

//! @fold Includes
#include <algorithm>
#include <cmath>
#include <map>

#include "lab/batching/load.hpp"
#include "lab/batching/workload.hpp"
#include "lab/core/rng.hpp"
#include "lab/core/run.hpp"
#include "lab/core/timing.hpp"
#include "lab/decode/generate.hpp"

using namespace lab;

//! ## What one more row costs
//!
//! A decode step multiplies one row by every weight matrix. With B sequences it multiplies B rows,
//! and each weight, once loaded, serves all of them. So a step should take a constant (loading)
//! and something for each row (arithmetic): $t(B) = a + bB$. The program measures real forward
//! passes of the built-in model and fits the line.

//! @fold A line through points

/// The line through (x, y) with the least squares. @return {at 0, slope}
std::pair<double, double> fit_line(const std::vector<double>& x,
                                   const std::vector<double>& y) {
  double n = double(x.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
    sxx += x[i] * x[i];
    sxy += x[i] * y[i];
  }
  const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  return {(sy - slope * sx) / n, slope};
}

//! Every sequence has 32 tokens in the cache; a step adds one token to each of B.

/// Times decode steps of B sequences, each with 32 tokens cached.
/// @return what a step of this model takes
StepCost show_cheap(Run& run, Model& model) {
  run.section("cheap");
  const std::vector<double> sizes = run.self_test()
                                        ? std::vector<double>{1, 2, 4}
                                        : std::vector<double>{1, 2, 4, 8, 16, 32, 64};
  const auto n_max = std::int64_t(sizes.back());
  const std::vector<std::int32_t> prompt(32, 1);
  const auto cache = make_contiguous_cache(model.transformer(), n_max, 33);
  for (std::int64_t s = 0; s < n_max; ++s) {
    ForwardBatch prefill;
    prefill.add_without_logits(s, 0, prompt);
    model.transformer().forward(prefill, *cache);
  }
  std::vector<std::vector<double>> times(sizes.size());
  for (int round = 0; round < (run.self_test() ? 2 : 15); ++round)
    for (std::size_t i = 0; i < sizes.size(); ++i) {  // interleaved: noise hits all alike
      ForwardBatch step;
      for (std::int64_t s = 0; s < std::int64_t(sizes[i]); ++s)
        step.add(s, 32, std::span(prompt).first(1));
      times[i].push_back(milliseconds([&] { model.transformer().forward(step, *cache); }));
      for (std::int64_t s = 0; s < std::int64_t(sizes[i]); ++s) cache->truncate(s, 32);
    }
  std::vector<double> ms, rate, line;
  for (const auto& t : times) ms.push_back(summarize(t).p50);
  const auto [a, b] = fit_line(sizes, ms);
  run.print("{:>5} {:>12} {:>12} {:>10} {:>13}\n", "B", "step, ms", "line, ms", "tokens/s",
            "against B = 1");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    rate.push_back(1e3 * sizes[i] / ms[i]);
    line.push_back(a + b * sizes[i]);
    run.print("{:>5.0f} {:>12.3f} {:>12.3f} {:>10.0f} {:>12.1f}x\n", sizes[i], ms[i],
              line[i], rate[i], rate[i] / rate[0]);
  }
  run.series("cheap", "sequences in the step, B", "tokens/s", sizes, {{"measured", rate}});
  run.metric("fit_step", a, "ms");
  run.metric("fit_token", b, "ms");
  run.metric("fit_rows", a / b);
  run.metric("batch_gain", rate.back() / rate.front(), "x");
  run.metric("largest_batch", sizes.back());
  return {a / 1e3, b / 1e3, 0};
}

//! @output cheap
//! @plot cheap Tokens per second of real decode steps. One weight matrix in the cache of the CPU serves all rows.
//! @expect batch_gain > 1.5
//!
//! {{largest_batch:.0f}} sequences together get **{{batch_gain:.1f}} times** the tokens per second
//! of one. The line has $a$ = {{fit_step:.3f}} ms and $b$ = {{fit_token:.3f}} ms. As long as $bB$
//! is small beside $a$, another row is nearly free; past $B = a/b$, here {{fit_rows:.1f}} rows, each
//! costs its full price. That is soon: the built-in model fits into this CPU's cache, so loading its
//! weights is cheap, and there is little to share. On a GPU, a hundred rows are nearly free.
//!
//! @predict An 8B model in 16 bit on a GPU with 2.0 TB/s and 312 TFLOP/s, of which two thirds are
//! reached. What are $a$ and $b$, and from which B on is a step bound by arithmetic?
//! @answer $a$ = 16 GB / 1.33 TB/s = 12 ms; $b$ = 2 · 8·10⁹ FLOP / 208 TFLOP/s = 0.077 ms;
//! $B = a/b \approx 156$. (Attention comes on top: 128 KiB a position, 0.1 µs.)
//!
//! ## A clock that only counts
//!
//! The rest of the chapter asks *who waits for whom*, in loads of minutes, and wants the same answer
//! on every machine. So the schedules below are real, made by the same engine that serves the model,
//! but the time of a step is computed: $a + bT + c \cdot \text{positions}$, with the numbers just
//! predicted for an 8B model. They are a calculation, not a measurement; the line is what was
//! measured. A virtual clock moves on by that much. That the line also predicts whole runs of the
//! real model is checked at the end of the next section.

const StepCost kCost{.step_s = 12e-3, .token_s = 0.077e-3, .kv_s = 0.1e-6};

/// A workload that has been served in virtual time.
struct Served {
  LoadRun run;
  LoadReport report;
};

Served serve(const SchedulerConfig& config, std::vector<Request> requests,
             const Policy& policy = first_come_first_served(),
             std::int64_t kv_positions = 1 << 20) {
  VirtualClock clock;
  SimulatedModel model(clock, kCost);
  PooledKvSpace kv(kv_positions);
  Engine engine(model, kv, clock, config, policy);
  Served s{run_load(engine, std::move(requests)), {}};
  s.report = make_report(s.run, config.max_num_seqs, kv_positions);
  return s;
}

SchedulerConfig static_batches(std::int64_t n_seqs) {
  SchedulerConfig c;
  c.interleave = Interleave::static_batches;
  c.admission = Admission::reserve;
  c.chunked_prefill = false;
  c.max_num_seqs = n_seqs;
  c.max_num_batched_tokens = 1 << 14;
  return c;
}

SchedulerConfig continuous(std::int64_t n_seqs, std::int64_t budget = 256) {
  SchedulerConfig c;
  c.max_num_seqs = n_seqs;
  c.max_num_batched_tokens = budget;
  return c;
}

//! ## Who sits in which slot
//!
//! The old way to batch: take B requests, pad their prompts to one length, decode until the *last*
//! one is done, take the next B. **Static batching.** An answer of 10 tokens beside one of 100 keeps
//! its slot for 90 steps in which nothing comes out of it.
//!
//! The other way (Orca, 2022) decides again before *every* step. Who is done leaves at once; who
//! waits takes the slot. **Continuous batching.** That is all of the idea:
//!
//! @show lib/batching/engine.cpp:step
//!
//! Twelve requests, A to L, four slots; a column is a fixed piece of time, a dot an empty slot.

//! @fold Drawing the slots

void draw_slots(Run& run, const LoadRun& load, double column_s, std::int64_t n_slots) {
  std::vector<std::string> slots(static_cast<std::size_t>(n_slots), std::string(72, '.'));
  for (const RequestResult& r : load.results)
    for (const Stay& stay : r.stays)
      for (std::size_t c = 0; c < 72; ++c) {
        const double middle = (double(c) + 0.5) * column_s;
        if (stay.begin_s <= middle && middle < stay.end_s)
          slots[std::size_t(stay.sequence)][c] = char('A' + r.request.id);
      }
  for (const std::string& slot : slots) run.print("  {}\n", slot);
}

void record_slots(Run& run, const std::string& key, const LoadRun& load) {
  std::vector<double> index, request, slot, begin, end;
  for (const RequestResult& r : load.results)
    for (const Stay& stay : r.stays) {
      index.push_back(double(index.size()));
      request.push_back(double(r.request.id));
      slot.push_back(double(stay.sequence));
      begin.push_back(stay.begin_s);
      end.push_back(stay.end_s);
    }
  run.series(key, "stay", "", index,
             {{"request", request}, {"slot", slot}, {"begin_s", begin}, {"end_s", end}});
}

void show_slots(Run& run) {
  run.section("slots");
  std::vector<Request> requests;
  for (const std::int64_t length : {60, 12, 25, 8, 30, 90, 10, 18, 40, 14, 22, 50}) {
    Request r;
    r.id = std::ssize(requests);
    r.prompt.assign(8, 1);
    r.max_tokens = length;
    r.ignore_end = true;
    requests.push_back(r);
  }
  const Served fixed = serve(static_batches(4), requests);
  const Served moving = serve(continuous(4), requests);
  const double column_s = fixed.report.duration_s / 72;
  for (const auto& [name, s] : {std::pair{"static", &fixed}, {"continuous", &moving}}) {
    run.print("{}: {:.2f} s, {:.0f} % of the slots' time used\n", name,
              s->report.duration_s, 100 * s->report.slot_utilisation);
    draw_slots(run, s->run, column_s, 4);
    record_slots(run, fmt::format("slots_{}", name), s->run);
  }
  run.metric("slots_static_s", fixed.report.duration_s, "s");
  run.metric("slots_continuous_s", moving.report.duration_s, "s");
  run.check(moving.report.duration_s < fixed.report.duration_s, "the same answers, sooner");
}

//! @output slots
//! @figure slots Move the slider through time: static batching above, continuous below, the same twelve requests.
//!
//! ## How much it wastes
//!
//! A batch of B answers takes as many steps as its longest. The share of slots in it that do
//! nothing is
//!
//! $$ 1 - \frac{\sum_i \text{len}_i}{B \max_i \text{len}_i}, \quad\text{over many batches}\quad
//!    1 - \frac{\mathbb{E}[\text{len}]}{\mathbb{E}[\max_B \text{len}]} . $$
//!
//! Of $n$ known lengths $x_1 \le \dots \le x_n$, the expected longest of B drawn from them is
//! $\sum_i x_i \left[(i/n)^B - ((i-1)/n)^B\right]$: the $i$-th is the longest if all B are among
//! the first $i$, but not all among the first $i-1$. A continuous engine keeps its slots full, so it should
//! be faster by $\mathbb{E}[\max]/\mathbb{E}[\text{len}]$. Nothing in that formula knows about the model.

double expected_longest(std::vector<double> lengths, double B) {
  std::sort(lengths.begin(), lengths.end());
  const double n = double(lengths.size());
  double sum = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    sum += lengths[i] * (std::pow(double(i + 1) / n, B) - std::pow(double(i) / n, B));
  return sum;
}

void show_waste(Run& run) {
  run.section("waste");
  constexpr std::int64_t B = 16;
  std::vector<double> sigmas{0, 0.5, 1, 1.5}, predicted, measured;
  run.print("{:>6} {:>6} {:>8} {:>14} {:>10} {:>12} {:>10}\n", "sigma", "mean", "E[max]",
            "waste formula", "measured", "gain formula", "measured");
  bool waste_agrees = true, gain_agrees = true;
  for (const double sigma : sigmas) {
    WorkloadConfig w;
    w.n_requests = 2000;
    w.arrivals = Arrivals::at_once;
    w.prompt = {.median = 16, .sigma = 0};
    w.output = {.median = 64, .sigma = sigma};
    const auto requests = make_workload(w);
    std::vector<double> lengths;
    for (const Request& r : requests) lengths.push_back(double(r.max_tokens));
    const double mean = summarize(lengths).mean, longest = expected_longest(lengths, B);
    const LoadReport fixed = serve(static_batches(B), requests).report;
    const LoadReport moving = serve(continuous(B), requests).report;
    predicted.push_back(longest / mean);
    measured.push_back(moving.output_tokens_per_s / fixed.output_tokens_per_s);
    const double waste = 1 - mean / longest, idle = 1 - fixed.slot_utilisation;
    run.print("{:>6.1f} {:>6.0f} {:>8.0f} {:>13.1f}% {:>9.1f}% {:>11.2f}x {:>9.2f}x\n",
              sigma, mean, longest, 100 * waste, 100 * idle, predicted.back(),
              measured.back());
    waste_agrees = waste_agrees && std::abs(waste - idle) < 0.03;
    gain_agrees = gain_agrees && std::abs(measured.back() / predicted.back() - 1) < 0.1;
  }
  run.series("waste", "sigma of the log-normal answer lengths",
             "continuous over static, throughput", sigmas,
             {{"E[max]/E[len]", predicted}, {"measured", measured}});
  run.metric("gain_skewed", measured[2], "x");
  run.check(waste_agrees, "idle slots are what the lengths say, within 3 points");
  run.check(gain_agrees, "the gain is what the lengths say, within 10 %");
  run.check(measured[2] >= 2, "at least twice the throughput on the skewed mix, sigma 1");
}

//! @output waste
//! @plot waste The gain of continuous batching, predicted from the lengths alone and measured.
//!
//! With answers of one length there is little to gain. Real answers are skewed: at sigma 1, where one
//! answer in 20 is over five times the median, the gain is {{gain_skewed:.2f}}x. That is why reports
//! of it range from nothing to "23x": they measured different lengths (and some of them, a slow
//! baseline). Ask for the lengths before you believe a factor.
//!
//! ## Padding
//!
//! A rectangular batch also pads its prompts to the longest: the same formula, of prompts. A flat
//! batch (`ForwardBatch`: T tokens, each with its sequence and position) has nothing to pad.

//! @fold One batch of eight prompts

void show_padding(Run& run) {
  run.section("padding");
  WorkloadConfig w;
  w.n_requests = 8;
  w.arrivals = Arrivals::at_once;
  w.prompt = {.median = 64, .sigma = 1};
  w.output = {.median = 1, .sigma = 0};  // prefill only
  const auto requests = make_workload(w);
  std::vector<std::int64_t> lengths;
  for (const Request& r : requests) lengths.push_back(std::ssize(r.prompt));
  const double formula = padding_share(lengths);
  const LoadReport padded = serve(static_batches(8), requests).report;
  const LoadReport flat = serve(continuous(8, 4096), requests).report;
  run.print("prompts of {} tokens\n", fmt::join(lengths, ", "));
  run.print("{:>8} {:>8} {:>9} {:>11} {:>13}\n", "", "tokens", "padding", "share",
            "prefill, ms");
  for (const auto& [name, r] : {std::pair{"padded", &padded}, {"flat", &flat}})
    run.print("{:>8} {:>8} {:>9} {:>10.1f}% {:>13.1f}\n", name, r->n_tokens, r->padding,
              100 * r->padding_share, 1e3 * r->duration_s);
  run.metric("padding_percent", 100 * formula, "%");
  run.check(std::abs(padded.padding_share - formula) < 1e-12 && flat.padding == 0,
            "the padded batch wastes the formula's share, the flat one nothing");
}

//! @output padding
//!
//! ## Nobody's answer changes
//!
//! A request must not notice its neighbours: not those who come and go, not that its prompt was cut
//! in pieces, not even that it was thrown out and had to compute its text again. The built-in
//! model serves requests that arrive at random moments, with few slots, few tokens a step, and
//! urgent requests that push others out. Each answer is compared, token by token, with what
//! chapter 02's `generate` gives for that prompt alone.

//! @fold The requests, and serving them

std::vector<Request> random_requests(Run& run, Model& model, Rng& rng) {
  const auto text = prompt_ids(
      model.tokenizer(),
      "Once upon a time there was a small fox named Tom. Tom lived in the forest with a "
      "friend named Ida. One sunny day, Tom found a red ball and showed it to Ida.");
  std::vector<Request> requests(run.self_test() ? 8 : 24);
  for (Request& r : requests) {
    r.id = &r - requests.data();
    const auto begin = rng.below(std::ssize(text) / 2);
    const auto count = 1 + rng.below(run.self_test() ? 8 : std::ssize(text) / 2);
    r.prompt.assign(text.begin() + begin, text.begin() + begin + count);
    r.max_tokens = run.self_test() ? 6 : 1 + rng.below(40);
    r.ignore_end = true;
    r.priority = -(r.id / 3);  // newcomers are more urgent
  }
  return requests;
}

/// Serves the requests, each submitted after a few steps of the others.
/// @return the results by id
std::map<std::int64_t, RequestResult> serve_model(Model& model,
                                                  const SchedulerConfig& config,
                                                  const std::vector<Request>& requests,
                                                  Rng& rng) {
  const auto cache = make_contiguous_cache(model.transformer(), config.max_num_seqs, 128);
  SlotKvSpace kv(config.max_num_seqs, 128, cache.get());
  TransformerRunner runner(model, *cache);
  VirtualClock clock;  // time stands still but for the order of arrival
  Engine engine(runner, kv, clock, config, by_priority(1000));
  for (const Request& r : requests) {
    engine.submit(r);
    for (std::int64_t i = rng.below(5); i > 0; --i) engine.step();
    clock.advance(1);
  }
  while (engine.step()) {
  }
  std::map<std::int64_t, RequestResult> results;
  for (RequestResult& r : engine.take_ended()) results.emplace(r.request.id, std::move(r));
  return results;
}

//! The check itself: first each request alone, then all of them in four ways.

void check_same(Run& run, Model& model) {
  run.section("same");
  Rng rng(3);
  const auto requests = random_requests(run, model, rng);
  std::vector<std::vector<std::int32_t>> alone;
  for (const Request& r : requests) {
    const auto cache = make_contiguous_cache(model.transformer(), 1, 128);
    GenerateOptions options;
    options.max_tokens = r.max_tokens;
    options.ignore_end = true;
    alone.push_back(generate(model, *cache, r.prompt, options).ids);
  }
  SchedulerConfig pushed = continuous(3, 16);  // 16 tokens a step: prompts come in chunks
  pushed.preempt_for_order = true;
  SchedulerConfig separate = static_batches(3);
  separate.interleave = Interleave::separate;
  run.print("{} requests, 3 slots\n{:<38} {:>11} {:>10} {:>6}\n", requests.size(), "",
            "preemptions", "recomputed", "equal");
  bool all_equal = true;
  std::int64_t preemptions = 0;
  for (const auto& [name, config] :
       {std::pair{"mixed, 16 tokens a step, preemption", pushed},
        {"mixed, 64 tokens a step", continuous(3, 64)},
        {"separate prefill and decode", separate},
        {"static batches", static_batches(3)}}) {
    std::int64_t n_equal = 0, recomputed = 0, n_preempted = 0;
    for (const auto& [id, result] : serve_model(model, config, requests, rng)) {
      n_equal += result.ids == alone[std::size_t(id)];
      n_preempted += result.preemptions;
      recomputed += result.recomputed_tokens;
    }
    run.print("{:<38} {:>11} {:>10} {:>3}/{}\n", name, n_preempted, recomputed, n_equal,
              requests.size());
    all_equal = all_equal && n_equal == std::ssize(requests);
    preemptions += n_preempted;
  }
  run.metric("same_preemptions", double(preemptions));
  run.check(all_equal, "every answer is the one that its prompt gets alone");
  run.check(preemptions > 0, "requests were pushed out on the way");
}

//! @output same
//!
//! It is exact because one row's arithmetic does not depend on the other rows here. With kernels
//! that choose another order of addition for another batch size, two nearly tied tokens may swap; see
//! chapter 02.
//!
//! Now in real time: the same engine, the real model, all requests at once. The line fitted above,
//! $a + bT$, is summed over the steps that were taken. Five runs of each, in turns; the fastest counts.

//! @fold The run in real time

void show_real(Run& run, Model& model, const StepCost& cost) {
  run.section("real");
  WorkloadConfig w;
  w.n_requests = run.self_test() ? 6 : 64;
  w.arrivals = Arrivals::at_once;
  w.prompt = {.median = 4, .sigma = 0};
  w.output = {.median = run.self_test() ? 3.0 : 24.0, .sigma = 1, .least = 1, .most = 200};
  const auto requests = make_workload(w);
  const std::int64_t B = run.self_test() ? 2 : 8;
  double best[2] = {1e9, 1e9}, line[2] = {};  // ms
  std::size_t steps[2] = {};
  for (int round = 0; round < (run.self_test() ? 1 : 5); ++round)
    for (const int i : {0, 1}) {  // taking turns: noise hits both
      const auto cache = make_contiguous_cache(model.transformer(), B, 256);
      SlotKvSpace kv(B, 256, cache.get());
      TransformerRunner runner(model, *cache);
      SteadyClock clock;
      Engine engine(runner, kv, clock, i == 0 ? static_batches(B) : continuous(B));
      const LoadRun load = run_load(engine, requests);
      double measured = 0;
      line[i] = 0;
      for (const StepRecord& s : load.steps) {
        line[i] += 1e3 * (cost.step_s + cost.token_s * double(s.n_tokens));
        measured += 1e3 * (s.end_s - s.begin_s);
      }
      best[i] = std::min(best[i], measured);
      steps[i] = load.steps.size();
    }
  run.print("{:>12} {:>7} {:>12} {:>9}\n", "", "steps", "measured, ms", "line, ms");
  for (const int i : {0, 1})
    run.print("{:>12} {:>7} {:>12.1f} {:>9.1f}\n", i == 0 ? "static" : "continuous",
              steps[i], best[i], line[i]);
  run.metric("real_gain", best[0] / best[1], "x");
  run.metric("real_steps_gain", double(steps[0]) / double(steps[1]), "x");
  run.metric("line_static", best[0] / line[0], "x");
  run.metric("line_continuous", best[1] / line[1], "x");
  run.check(steps[1] < steps[0], "continuous batching takes fewer steps");
}

//! @output real
//! @expect real_steps_gain > 1.5
//! @expect real_gain > 0.9
//! @expect line_static < 2
//! @expect line_continuous < 2
//!
//! {{real_steps_gain:.1f}} times fewer steps, but only {{real_gain:.2f}} times the speed. Why? A flat batch
//! with empty slots is a cheaper step, and on a small model on a CPU it is the rows that cost. Where
//! loading the weights dominates, an empty slot saves nothing, and steps are what counts.
//!
//! ## Mixed steps and the token budget
//!
//! A prompt of 2,000 tokens in one step makes that step more than ten times as long, and everybody who is
//! decoding sees their text stop. So prompts are cut: each step takes the next token of everyone
//! who decodes, and fills the rest of a **token budget**, `max_num_batched_tokens`, with pieces
//! of prompts.
//!
//! @show lib/batching/scheduler_mixed.cpp:plan_mixed
//! @show lib/batching/scheduler_mixed.cpp:prompt_piece
//!
//! @predict Small budget or large: which one is good for TTFT, and which for ITL?

//! @fold The load, and a sweep over the budget

WorkloadConfig chat_load(double rate) {
  WorkloadConfig w;
  w.n_requests = 400;
  w.rate = rate;
  w.prompt = {.median = 256, .sigma = 1, .least = 8, .most = 2048};
  w.output = {.median = 64, .sigma = 0.8, .least = 4, .most = 512};
  w.slo = {.ttft_s = 0.5, .tpot_s = 0.04};
  return w;
}

/// Completed requests per second whose first token came in 500 ms, and no later one more
/// than 60 ms after the one before it.
double smooth_per_s(const Served& s) {
  const auto n =
      std::count_if(s.run.results.begin(), s.run.results.end(), [](const RequestResult& r) {
        return r.metrics.ttft_ms() <= 500 && summarize(r.metrics.itl_ms()).max <= 60;
      });
  return double(n) / s.report.duration_s;
}

void show_budget(Run& run) {
  run.section("budget");
  const auto requests = make_workload(chat_load(8));
  std::vector<double> budgets, ttft, itl, smooth;
  run.print("{:>6} {:>9} {:>8} {:>8} {:>8} {:>13} {:>12}\n", "budget", "TTFT p50",
            "p99, ms", "ITL p50", "p99, ms", "good req/s", "no stall");
  for (const std::int64_t budget : {64, 128, 256, 512, 1024, 2048}) {
    const Served s = serve(continuous(64, budget), requests);
    const LoadReport& r = s.report;
    budgets.push_back(double(budget));
    ttft.push_back(r.ttft_ms.p99);
    itl.push_back(r.itl_ms.p99);
    smooth.push_back(smooth_per_s(s));
    run.print("{:>6} {:>9.0f} {:>8.0f} {:>8.1f} {:>8.1f} {:>13.2f} {:>12.2f}\n", budget,
              r.ttft_ms.p50, r.ttft_ms.p99, r.itl_ms.p50, r.itl_ms.p99, r.goodput_per_s,
              smooth.back());
  }
  run.series("budget", "ITL p99, ms", "TTFT p99, ms", itl, {{"TTFT", ttft}});
  const auto best = std::max_element(smooth.begin(), smooth.end());
  run.metric("best_budget", budgets[std::size_t(best - smooth.begin())], "tokens");
  run.metric("ttft_small", ttft.front(), "ms");
  run.metric("ttft_large", ttft.back(), "ms");
  run.metric("itl_small", itl.front(), "ms");
  run.metric("itl_large", itl.back(), "ms");
  run.check(
      std::is_sorted(ttft.rbegin(), ttft.rend()) && std::is_sorted(itl.begin(), itl.end()),
      "a larger budget: TTFT p99 falls, ITL p99 rises");
  run.check(best != smooth.begin() && best != smooth.end() - 1,
            "where no stall is allowed, the best budget is between the ends");
}

//! @output budget
//! @plot budget One against the other. Each point is a budget, from 64 tokens on the left to 2,048 on the right.
//! @answer A large budget finishes prompts in fewer steps: TTFT p99 falls from {{ttft_small:.0f}} to
//! {{ttft_large:.0f}} ms. But its steps are long, and ITL p99 rises from {{itl_small:.0f}} to
//! {{itl_large:.0f}} ms.
//!
//! Neither end is right in itself. **Goodput** counts the requests per second that met *all* their
//! objectives, here TTFT within 500 ms and TPOT within 40 ms. But TPOT is a mean, and a mean hides
//! one long stop. The last column asks that no gap is above 60 ms, and now the best budget is
//! {{best_budget:.0f}} tokens. An objective turns a matter of taste into a number to maximise; choose
//! one that says what people notice.
//!
//! ## Separate steps and waiting_served_ratio
//!
//! The other school (TGI) does not mix. A step is a prefill of new requests *or* a decode; everybody
//! waits for a prefill, so it should be worth it: at least `waiting_served_ratio` times the running
//! requests must wait, or `max_waiting_tokens` steps have passed.
//!
//! @show lib/batching/scheduler_separate.cpp:least_onboard

//! @fold The sweep over waiting_served_ratio

void show_ratio(Run& run) {
  run.section("ratio");
  const auto requests = make_workload(chat_load(6));
  std::vector<double> ratios, ttft, prefills;
  run.print("{:>6} {:>14} {:>10} {:>14} {:>10} {:>10}\n", "ratio", "TTFT p50, ms",
            "p99, ms", "TPOT p50, ms", "prefills", "good req/s");
  for (const double ratio : {0.0, 0.3, 0.6, 1.2}) {
    SchedulerConfig c = static_batches(64);
    c.interleave = Interleave::separate;
    c.waiting_served_ratio = ratio;
    c.max_waiting_tokens = 1000;  // so that the ratio alone decides
    const Served s = serve(c, requests);
    const auto n_prefills =
        std::count_if(s.run.steps.begin(), s.run.steps.end(),
                      [](const StepRecord& step) { return step.n_admitted > 0; });
    run.print("{:>6.1f} {:>14.0f} {:>10.0f} {:>14.1f} {:>10} {:>10.2f}\n", ratio,
              s.report.ttft_ms.p50, s.report.ttft_ms.p99, s.report.tpot_ms.p50, n_prefills,
              s.report.goodput_per_s);
    ratios.push_back(ratio);
    ttft.push_back(s.report.ttft_ms.p50);
    prefills.push_back(double(n_prefills));
  }
  run.series("ratio", "waiting_served_ratio", "TTFT p50, ms", ratios, {{"TTFT", ttft}});
  run.check(std::is_sorted(ttft.begin(), ttft.end()) &&
                std::is_sorted(prefills.rbegin(), prefills.rend()),
            "a larger ratio: fewer interruptions, and newcomers wait longer");
}

//! @output ratio
//! @plot ratio The more must wait before decoding is interrupted, the longer a newcomer waits.
//!
//! ## Reserve, or take what comes?
//!
//! A request's cache grows with its answer, and nobody knows how long that will be. **Reserve** its
//! largest size before it starts, and it will never be interrupted; or let it in with its text so
//! far, **on demand**, and when memory runs out, throw the last one out: its tokens stay, its keys
//! and values go and are computed again later.
//!
//! @show lib/batching/scheduler.cpp:admit

//! @fold Both schools in the same memory

void show_memory(Run& run) {
  run.section("memory");
  WorkloadConfig w;
  w.n_requests = 300;
  w.arrivals = Arrivals::at_once;
  w.prompt = {.median = 32, .sigma = 0.5};
  w.output = {.median = 192, .sigma = 0.8, .most = 1024};
  const auto requests = make_workload(w);
  constexpr std::int64_t kPositions = 8192;
  run.print("{:>10} {:>10} {:>9} {:>12} {:>12} {:>11}\n", "admission", "tokens/s",
            "running", "memory full", "preemptions", "recomputed");
  double rate[2] = {};
  for (const int i : {0, 1}) {
    SchedulerConfig c = continuous(256, 512);
    c.admission = i == 0 ? Admission::reserve : Admission::on_demand;
    const LoadReport r = serve(c, requests, first_come_first_served(), kPositions).report;
    run.print("{:>10} {:>10.0f} {:>9.1f} {:>11.0f}% {:>12} {:>11}\n",
              i == 0 ? "reserve" : "on demand", r.output_tokens_per_s,
              256 * r.slot_utilisation, 100 * r.kv_held * r.kv_stored, r.n_preemptions,
              r.recomputed_tokens);
    rate[i] = r.output_tokens_per_s;
    run.check((r.n_preemptions == 0) == (i == 0) && r.n_completed == w.n_requests,
              i == 0 ? "reserved: all complete, nobody is interrupted"
                     : "on demand: all complete, some interrupted");
  }
  run.metric("on_demand_gain", rate[1] / rate[0], "x");
  run.check(rate[1] > rate[0], "on demand gives more tokens from the same memory");
}

//! @output memory
//!
//! On demand, the same memory gives {{on_demand_gain:.2f}} times the tokens, recomputation included. And
//! this flatters `reserve`: here it knows each answer's length exactly. In service it must assume
//! `max_tokens`, which is often many times more. The price is in the last column, and in the ITL of
//! those who were thrown out.
//!
//! ## Who goes first
//!
//! Eight slots, full of long background jobs. An urgent request arrives. With FCFS it waits behind
//! all of them. With a priority queue it is first *in the queue*, and still waits until a slot is
//! free: a low priority holds what a high one needs, **priority inversion**. The cure is to let it
//! push out the last one that runs.
//!
//! @show lib/batching/scheduler_mixed.cpp:displace

//! @fold Urgent requests among jobs

std::vector<Request> urgent_among_jobs() {
  WorkloadConfig w;
  w.n_requests = 60;
  w.rate = 4;
  w.prompt = {.median = 128, .sigma = 0.5};
  w.output = {.median = 400, .sigma = 0.3};
  std::vector<Request> all = make_workload(w);
  for (Request& r : all) r.priority = 1;
  w.n_requests = 30;
  w.rate = 1;
  w.seed = 1;
  w.output = {.median = 16, .sigma = 0};
  for (Request& r : make_workload(w)) all.push_back(std::move(r));
  std::stable_sort(all.begin(), all.end(), [](const Request& a, const Request& b) {
    return *a.arrival_s < *b.arrival_s;
  });
  for (Request& r : all) r.id = &r - all.data();
  return all;
}

void show_priority(Run& run) {
  run.section("priority");
  const auto requests = urgent_among_jobs();
  run.print("{:<24} {:>12} {:>10} {:>13} {:>11}\n", "", "TTFT p50, ms", "worst, ms",
            "jobs' mean, s", "preemptions");
  std::vector<double> worst, latency;
  for (const auto& [name, policy, push] :
       {std::tuple{"FCFS", first_come_first_served(), false},
        {"priority", by_priority(600), false},
        {"priority, and may push", by_priority(600), true}}) {
    SchedulerConfig c = continuous(8, 512);
    c.preempt_for_order = push;
    const Served s = serve(c, requests, policy);
    std::vector<double> urgent, jobs;
    for (const RequestResult& r : s.run.results)
      (r.request.priority == 0 ? urgent : jobs)
          .push_back(r.request.priority == 0 ? r.metrics.ttft_ms()
                                             : r.metrics.latency_ms() / 1e3);
    run.print("{:<24} {:>12.0f} {:>10.0f} {:>13.1f} {:>11}\n", name, summarize(urgent).p50,
              summarize(urgent).max, summarize(jobs).mean, s.report.n_preemptions);
    worst.push_back(summarize(urgent).max);
    latency.push_back(summarize(jobs).mean);
  }
  run.metric("inversion_ms", worst[1], "ms");
  run.metric("cured_ms", worst[2], "ms");
  run.metric("jobs_slower", 100 * (latency[2] / latency[0] - 1), "%");
  run.check(worst[1] < worst[0] && 5 * worst[2] < worst[1],
            "a queue by priority helps; pushing out cures the inversion");
}

//! @output priority
//! @expect jobs_slower < 10
//!
//! The worst wait of an urgent request falls from {{inversion_ms:.0f}} to {{cured_ms:.0f}} ms, and the
//! jobs take {{jobs_slower:.0f}} % longer than with FCFS. (vLLM orders by priority and preempts when memory is short; a full set of
//! slots alone did not preempt when this was written.)
//!
//! Which order is best depends on what is counted. Below, requests come in bursts, at two mean rates;
//! half of them have an objective of 1 s for the first token, the others of 20 s.
//!
//! Every order here is a fixed key: each request stands as if it had arrived a *handicap* later. That
//! bounds **starvation**: no one is overtaken by a request that arrives more than the difference
//! of their handicaps after it. The program looks at all pairs.

/// How far the worst overtaking goes beyond what the policy allows, in seconds; at most 0.
double beyond_bound(const LoadRun& run, const Policy& policy) {
  double worst = -1e9;
  for (const RequestResult& a : run.results)
    for (const RequestResult& b : run.results) {
      const double later_s = *b.request.arrival_s - *a.request.arrival_s;
      if (later_s <= 0 || b.stays.front().begin_s >= a.stays.front().begin_s) continue;
      const double allowed_s = policy.handicap_s(a.request) - policy.handicap_s(b.request);
      worst = std::max(worst, later_s - allowed_s);
    }
  return worst;
}

//! @fold Four orders under two loads

void show_policies(Run& run) {
  run.section("policies");
  bool bounded = true;
  std::map<std::string, double> met[2], p50[2];
  for (const int overload : {0, 1}) {
    WorkloadConfig w = chat_load(overload ? 24 : 8);
    w.arrivals = Arrivals::on_off;
    auto requests = make_workload(w);
    for (Request& r : requests) {
      r.slo = {.ttft_s = r.id % 2 ? 1.0 : 20.0};
      r.priority = r.id % 3;
    }
    run.print("{:<20} {:>13} {:>9} {:>9} {:>15}\n",
              overload ? "24 requests/s" : "8 requests/s", "TTFT p50, ms", "p99, ms",
              "max, ms", "objectives met");
    for (const char* name : {"fcfs", "priority", "shortest", "deadline"}) {
      const Policy policy = make_policy(name);
      const Served s = serve(continuous(32, 512), requests, policy);
      bounded = bounded && beyond_bound(s.run, policy) <= 1e-9;
      p50[overload][name] = s.report.ttft_ms.p50;
      met[overload][name] = 100 * s.report.goodput_per_s / s.report.requests_per_s;
      run.print("  {:<18} {:>13.0f} {:>9.0f} {:>9.0f} {:>14.1f}%\n", name,
                s.report.ttft_ms.p50, s.report.ttft_ms.p99, s.report.ttft_ms.max,
                met[overload][name]);
    }
  }
  run.metric("met_fcfs", met[0]["fcfs"], "%");
  run.metric("met_deadline", met[0]["deadline"], "%");
  run.metric("overload_fcfs", met[1]["fcfs"], "%");
  run.metric("overload_deadline", met[1]["deadline"], "%");
  run.check(bounded, "nobody is overtaken by more than the policy allows");
  run.check(p50[1]["shortest"] < p50[1]["fcfs"], "shortest first has the lower median");
  run.check(met[0]["deadline"] > met[0]["fcfs"], "deadlines first meets more objectives");
}

//! @output policies
//!
//! Shortest first wins the median and pays in the tail. Deadlines first meets
//! {{met_deadline:.0f}} % of the objectives where FCFS meets {{met_fcfs:.0f}} %, while the load can be
//! {{met_deadline:.0f}} % of the objectives where FCFS meets {{met_fcfs:.0f}} %, and it takes
//! nothing from those who can wait. With three times the load it meets
//! {{overload_deadline:.0f}} %, FCFS {{overload_fcfs:.0f}} %: no order makes a machine faster. Past
//! its capacity a server has to turn requests away, early.

void chapter(Run& run) {
  const auto device = make_device(run.device());
  run.measured_on(device->description());
  const auto model = load_model(run.model(), *device);
  const StepCost cost = show_cheap(run, *model);
  show_slots(run);
  show_waste(run);
  show_padding(run);
  check_same(run, *model);
  show_real(run, *model, cost);
  show_budget(run);
  show_ratio(run);
  show_memory(run);
  show_priority(run);
  show_policies(run);
}

int main(int argc, char** argv) { return run_chapter("03_batching", chapter, argc, argv); }

//! ## Where it does not help
//!
//! - **One user.** There is nothing to share; a step takes what it took.
//! - **Long contexts.** Weights are shared, caches are not: every sequence reads its own keys and
//!   values, so with long texts a step grows with B again.
//! - **Past $B = a/b$.** More rows raise throughput no more, and everybody's ITL grows.
//!
//! ## What a production engine does differently
//!
//! - It overlaps planning the next step with computing this one; here the CPU waits.
//! - It keeps keys and values in pages, so that on-demand admission holds just what is filled
//!   (chapter 05; here a pool that counts positions stands for it).
//! - vLLM mixes and preempts by recomputation; TGI separates and reserves; TensorRT-LLM offers both
//!   under the names `MAX_UTILIZATION` and `GUARANTEED_NO_EVICT`.
//! - Some run prefill and decode on different machines, so that neither waits for the other.
//!
//! ## Further reading
//!
//! - Yu et al. 2022, *Orca*, OSDI '22, section 3: iteration-level scheduling and selective batching.
//! - Agrawal et al. 2024, *Sarathi-Serve*, arXiv:2403.02310, section 4: chunked prefill, and
//!   batches without stalls.
//! - Kwon et al. 2023, *PagedAttention*, arXiv:2309.06180, section 4.5: preemption by
//!   recomputation or swapping.
//! - Liu and Layland 1973, *Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
//!   Environment*, section 7: earliest deadline first.
