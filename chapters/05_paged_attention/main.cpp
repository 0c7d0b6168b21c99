//! # Paged attention
//! @builds-on 03_batching
//! @time 90
//! @exercise 05_paged_attention
//! @summary Keys and values in small blocks: no waste, shared prompts, more sequences in the same memory
//! @uses lib/paging/*.cpp lib/decode/parallel_sampling.cpp lib/decode/beam_search.cpp
//!
//! Chapter 02 kept each sequence's keys and values in one piece, as long as the longest text that
//! might come. Chapter 03 then let many sequences run at once, and memory became what decides how
//! many. This chapter stores the same numbers in small blocks that lie anywhere, with a table that
//! says where. It is how operating systems have handed out memory since the 1960s, and since vLLM
//! (2023) how every serving engine handles its cache.
//!
//! **You will learn to**
//! - say where the memory of a contiguous cache goes, and bound the waste of a paged one;
//! - read and write through a block table, and prove that no bit of the result changes;
//! - share blocks between sequences: samples of one prompt, beams, users with one system prompt;
//! - say what each of it buys in sequences, tokens per second and TTFT, and what block size costs.

//! @fold Includes
#include <algorithm>
#include <cmath>
#include <map>

#include "lab/batching/load.hpp"
#include "lab/batching/workload.hpp"
#include "lab/core/run.hpp"
#include "lab/core/timing.hpp"
#include "lab/decode/beam_search.hpp"
#include "lab/decode/parallel_sampling.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "lab/paging/paged_kv_space.hpp"
#include "lab/paging/paged_sequences.hpp"

using namespace lab;

//! ## A table instead of a place
//!
//! Cut the cache into **blocks** of $B$ positions. A sequence owns a list of blocks, its **block
//! table**. Position $p$ of it lies in
//!
//! $$ \text{slot}(p) = \text{table}[\lfloor p / B \rfloor] \cdot B + p \bmod B . $$
//!
//! Three sequences that grow in turns, in blocks of 4:

//! @fold Three sequences in twelve blocks
BlockManagerConfig blocks_of(std::int64_t block_size, std::int64_t n_blocks) {
  BlockManagerConfig c;
  c.block_size = block_size;
  c.n_blocks = n_blocks;
  return c;
}

/// Three sequences that grow in turns, and what each slot of memory holds meanwhile.
class Growing {
 public:
  explicit Growing(std::int64_t n_blocks) : manager_(blocks_of(4, n_blocks)) {
    for (std::size_t s = 0; s < 3; ++s) {
      texts_[s].assign(3 + 2 * s, std::int32_t(s));
      numbers_[s] = manager_.open(texts_[s], std::ssize(texts_[s])).value();
      manager_.stored(numbers_[s], texts_[s]);
    }
  }
  void grow(std::size_t s) {
    texts_[s].push_back(std::int32_t(s));
    manager_.grow(numbers_[s], std::ssize(texts_[s]));
    manager_.stored(numbers_[s], texts_[s]);
  }
  /// The sequence in each slot, from 1; 0 where there is none.
  std::vector<double> slots() const {
    std::vector<double> owner(std::size_t(4 * manager_.n_blocks()), 0);
    for (std::size_t s = 0; s < 3; ++s)
      for (std::size_t p = 0; p < texts_[s].size(); ++p)
        owner[std::size_t(table(s)[p / 4]) * 4 + p % 4] = double(s + 1);
    return owner;
  }
  std::span<const std::int32_t> table(std::size_t s) const {
    return manager_.blocks(numbers_[s]);
  }
  std::size_t length(std::size_t s) const { return texts_[s].size(); }
  BlockUsage usage() const { return manager_.usage(); }

 private:
  BlockManager manager_;
  std::vector<std::int32_t> texts_[3];
  std::int64_t numbers_[3] = {};
};

void show_table(Run& run) {
  run.section("table");
  Growing world(12);
  std::vector<double> slot(48);
  for (std::size_t i = 0; i < slot.size(); ++i) slot[i] = double(i);
  std::vector<Run::Line> steps{{"step 0", world.slots()}};
  for (int step = 1; step <= 6; ++step) {
    for (std::size_t s = 0; s < 3; ++s)
      if (s != 1 || step <= 3) world.grow(s);  // the second one's answer is short
    steps.push_back({fmt::format("step {}", step), world.slots()});
  }
  run.series("blocks", "slot", "sequence", slot, steps);
  for (std::size_t s = 0; s < 3; ++s) {
    run.print("sequence {}: {:>2} positions, table", char('A' + s), world.length(s));
    for (const std::int32_t block : world.table(s)) run.print(" {}", block);
    run.print("\n");
  }
  run.print("memory:");
  for (std::size_t i = 0; i < slot.size(); ++i)
    run.print("{}{}", i % 4 ? "" : " ", ".ABC"[int(world.slots()[i])]);
  run.print("\n");
  run.check(world.usage().room - world.usage().stored < 3 * 4,
            "less than one block is wasted for each sequence");
}

//! @output table
//! @figure blocks Move the slider: twelve blocks of four slots, and who writes where, step after step.
//!
//! New positions go to the last block; when it is full, any free block will do. Nothing is reserved
//! for a future that may not come, and blocks of a sequence that ended serve the next one at once.
//! What is lost is the unfilled end of each sequence's last block: **less than $B$ positions a
//! sequence**, half a block on average. (External fragmentation, holes too small for anybody,
//! cannot happen: all blocks are alike.)
//!
//! @show lib/paging/block_manager.cpp:open
//!
//! ## Attention through the table
//!
//! The cache writes a new token to its slot, the same scattered store as before:
//!
//! @show lib/paging/paged_kv_cache.cpp:append
//!
//! and attention reads position after position, looking the block up:
//!
//! @show kernels/cpu/paged_attention.cpp:definition
//!
//! That is the definition. The fast kernel does not gather anything: it resolves the rows of a chunk
//! of 128 keys to addresses once and then runs the very code of chapter 02's attention, which is
//! also how the CUDA kernel works (`kernels/cuda/attention_decode.cuh`). The contiguous cache is now
//! a special case: one block, as large as the capacity. So the two must agree to the last bit, for
//! every block size and every order of the blocks. Do they, on the real model, served in batches
//! with chunked prefill and with preemption forced by a pool that is too small?

/// Serves requests with the real model on blocks. @return the answers, by request
std::map<std::int64_t, RequestResult> serve_real(Model& model,
                                                 const std::vector<Request>& requests,
                                                 const BlockManagerConfig& blocks) {
  BlockManager manager(blocks);
  PagedKvCache cache(model.config(), manager, DType::f32, model.device());
  PagedKvSpace kv(manager);
  TransformerRunner runner(model, cache);
  VirtualClock clock;
  SchedulerConfig c;
  c.max_num_seqs = 4;
  c.max_num_batched_tokens = 24;
  Engine engine(runner, kv, clock, c);
  for (const Request& r : requests) engine.submit(r);
  while (engine.step()) {
  }
  std::map<std::int64_t, RequestResult> results;
  for (RequestResult& r : engine.take_ended()) results[r.request.id] = std::move(r);
  return results;
}

std::vector<Request> text_requests(const Model& model, std::int64_t max_tokens) {
  std::vector<Request> requests;
  for (const char* prompt :
       {"What is 2+2?", "Once upon a time", "Repeat: red fox, blue kite\nAnswer:",
        "Once upon a time there was a small fox", "What is 17+25?", "Once upon a time"}) {
    Request r;
    r.id = std::ssize(requests);
    r.prompt = prompt_ids(model.tokenizer(), prompt);
    r.max_tokens = max_tokens;
    r.ignore_end = true;
    requests.push_back(r);
  }
  return requests;
}

void check_same(Run& run, Model& model) {
  run.section("same");
  auto requests = text_requests(model, run.self_test() ? 4 : 24);
  if (run.self_test()) requests.resize(4);
  std::map<std::int64_t, std::vector<std::int32_t>> naive;
  for (const Request& r : requests) {
    GenerateOptions o;
    o.max_tokens = r.max_tokens;
    o.ignore_end = true;
    naive[r.id] = generate_naive(model, r.prompt, o).ids;
  }
  run.print("{:>10} {:>8} {:>13} {:>16} {:>8}\n", "block_size", "blocks", "preemptions",
            "found in cache", "tokens");
  bool all = true;
  for (const std::int64_t block_size : {1, 3, 16, 64}) {
    if (run.self_test() && block_size != 3 && block_size != 16) continue;
    const auto blocks = blocks_of(block_size, 80 / block_size + 2);
    bool equal = true;
    std::int64_t preemptions = 0, cached = 0;
    for (const auto& [id, result] : serve_real(model, requests, blocks)) {
      equal = equal && result.ids == naive[id];
      preemptions += result.preemptions;
      cached += result.cached_tokens;
    }
    run.print("{:>10} {:>8} {:>13} {:>16} {:>8}\n", block_size, blocks.n_blocks,
              preemptions, cached, equal ? "equal" : "DIFFER");
    all = all && equal;
  }
  run.check(all, "every answer is, token for token, that of the naive loop of chapter 01");
}

//! @output same
//!
//! ## What reading through a table costs
//!
//! The paper's GPU kernel was 20 to 26 % slower than a contiguous one (section 7.1); its authors
//! took that for what the memory buys. Here the table is read once for a run of rows, so little
//! should be lost. Decode steps of the built-in model at a long context, on both caches in turns:

void show_cost(Run& run, Model& model) {
  run.section("cost");
  const std::int64_t position =
      run.self_test() ? 20 : std::min<std::int64_t>(400, model.config().context_length - 1);
  const std::vector<std::int32_t> text(std::size_t(position) + 1, 1);
  const auto contiguous = make_contiguous_cache(model.transformer(), 1, position + 1);
  model.transformer().forward(
      single_sequence(0, std::span(text).first(std::size_t(position))), *contiguous);
  run.print("{:>10} {:>16} {:>11} {:>8}\n", "block_size", "contiguous, ms", "paged, ms",
            "ratio");
  std::vector<double> sizes, ratios;
  for (const std::int64_t block_size : {1, 4, 16, 64, 256}) {
    BlockManager manager(blocks_of(block_size, position / block_size + 2));
    PagedKvCache paged(model.config(), manager, DType::f32, model.device());
    const std::int64_t s = manager.open(text, position + 1).value();
    const std::span past(text.data(), std::size_t(position));
    ForwardBatch prompt, step;
    prompt.add(s, 0, past);
    step.add(s, position, std::span(text).last(1));
    model.transformer().forward(prompt, paged);
    manager.stored(s, past);
    std::vector<double> one, other, ratio;
    for (int i = 0; i < (run.self_test() ? 3 : 60); ++i) {
      contiguous->truncate(0, position);
      one.push_back(milliseconds([&] {
        model.transformer().forward(single_sequence(position, std::span(text).last(1)),
                                    *contiguous);
      }));
      other.push_back(milliseconds([&] { model.transformer().forward(step, paged); }));
      ratio.push_back(other.back() / one.back());
    }
    sizes.push_back(double(block_size));
    ratios.push_back(median(ratio));
    run.print("{:>10} {:>16.3f} {:>11.3f} {:>8.2f}\n", block_size, median(one),
              median(other), ratios.back());
  }
  run.metric("cost_position", double(position));
  run.metric("paged_ratio_16", ratios[2], "x");
  run.series("cost", "block size", "time of a paged step / contiguous", sizes,
             {{"ratio", ratios}});
}

//! @output cost
//! @expect paged_ratio_16 < 1.15
//!
//! With blocks of 16 a step at position {{cost_position:.0f}} takes {{paged_ratio_16:.2f}} times as
//! long as on the contiguous cache.
//!
//! ## Where the memory goes
//!
//! Now a load. Chat-like requests, prompts and answers log-normal, up to 2,048 positions each, in a
//! memory of 16,384 positions. The contiguous cache must reserve the longest possible text, so it
//! has 8 slots. The paged pool lets in whoever has blocks. Same engine, same scheduler, virtual time
//! with the step cost of chapter 03.

//! @fold The load, and serving it in virtual time
struct Served {
  LoadRun run;
  LoadReport report;
  double most_running = 0;
};

constexpr std::int64_t kMemory = 16384, kLongest = 2048;

Served serve(KvSpace& kv, const std::vector<Request>& requests, std::int64_t max_num_seqs) {
  VirtualClock clock;
  SimulatedModel model(clock, {.step_s = 12e-3, .token_s = 0.077e-3, .kv_s = 0.1e-6});
  SchedulerConfig c;
  c.max_num_seqs = max_num_seqs;
  c.max_num_batched_tokens = 512;
  Engine engine(model, kv, clock, c);
  Served s{run_load(engine, requests), {}};
  s.report = make_report(s.run, max_num_seqs, kv.total());
  for (const StepRecord& step : s.run.steps)
    s.most_running = std::max(s.most_running, double(step.n_running));
  return s;
}

std::vector<Request> chat_load(std::int64_t n) {
  WorkloadConfig w;
  w.n_requests = n;
  w.arrivals = Arrivals::at_once;
  w.prompt = {.median = 160, .sigma = 0.9, .least = 4, .most = 1024};
  w.output = {.median = 200, .sigma = 0.9, .least = 4, .most = 1024};
  w.seed = 5;
  return make_workload(w);
}

/// Positions held for each one stored, over the run, as a share that is wasted.
double waste(const Served& s) { return 100 * (1 - s.report.kv_stored); }

void show_memory(Run& run) {
  run.section("memory");
  const auto requests = chat_load(run.self_test() ? 40 : 400);
  SlotKvSpace slots(kMemory / kLongest, kLongest);
  const Served contiguous = serve(slots, requests, kMemory / kLongest);
  BlockManager manager(blocks_of(16, kMemory / 16));
  PagedKvSpace blocks(manager);
  const Served paged = serve(blocks, requests, 256);
  run.print("{:<11} {:>8} {:>17} {:>6} {:>10} {:>13}\n", "cache", "wasted",
            "most sequences", "mean", "tokens/s", "preemptions");
  for (const auto& [name, s, n] :
       {std::tuple{"contiguous", &contiguous, 8.0}, {"paged, 16", &paged, 256.0}})
    run.print("{:<11} {:>6.1f} % {:>17.0f} {:>6.1f} {:>10.0f} {:>13}\n", name, waste(*s),
              s->most_running, n * s->report.slot_utilisation,
              s->report.output_tokens_per_s, s->report.n_preemptions);
  const double sequences = paged.most_running / contiguous.most_running;
  const double throughput =
      paged.report.output_tokens_per_s / contiguous.report.output_tokens_per_s;
  run.metric("waste_contiguous", waste(contiguous), "%");
  run.metric("waste_paged", waste(paged), "%");
  run.metric("more_sequences", sequences, "x");
  run.metric("throughput_gain", throughput, "x");
  run.check(waste(paged) < 4, fmt::format("paged waste {:.1f} % < 4 %", waste(paged)));
  run.check(waste(contiguous) > 50,
            fmt::format("contiguous waste {:.0f} % > 50 %", waste(contiguous)));
}

//! @output memory
//!
//! The contiguous cache wastes **{{waste_contiguous:.0f}} %** of what it hands out; the paper
//! measured 62 to 80 % in the engines of 2023 (figure 2). The paged one wastes
//! **{{waste_paged:.1f}} %** (vLLM: below 4 %). So {{more_sequences:.1f}} times as many sequences
//! run at once, in the same bytes, and since chapter 03 we know what that is worth: a step for many
//! costs little more than a step for few. **{{throughput_gain:.1f}} times the tokens per second.**
//! @expect more_sequences > 2
//! @expect throughput_gain > 1.5
//!
//! The price stands in the last column. Who is let in on what it needs *now* may run out later; then
//! the last in the order gives all of its blocks back and computes its text again when there is
//! room (vLLM calls it recomputation). With chunked prefill that costs less than it sounds.
//!
//! @predict The pool has 1,024 blocks of 16. At the end of a run all requests have ended. How many
//! blocks must be free? What would 1,023 mean?
//! @answer 1,024. One missing block is a leak: some path ends a sequence without releasing it, or
//! releases less often than it shared. It is worth a check after every operation of a test, and
//! that is what `tests/paging/property_test.cpp` does, 30,000 times.
//!
//! ## The same blocks for several
//!
//! A table can name a block that another table names, too. Blocks count their owners. Ask for four
//! samples of one prompt, and the prompt's blocks are stored once:
//!
//! @show lib/decode/parallel_sampling.cpp:samples
//!
//! A full block is never written again, so sharing it is safe for ever. The *last* block of the
//! prompt is not full, and all samples want to write their first token into it, a different one each.
//! **Copy-on-write**: who writes to a block with another owner takes a new block, copies the rows,
//! and puts it into its own table.
//!
//! @show lib/paging/block_manager.cpp:grow
//!
//! vLLM's newer engine shares full blocks only and lets each sample compute the end of the prompt
//! itself (**append-only**): a few tokens of work in place of the copy, and no special case in the
//! kernels' caller. Both are here (`ForkMode`). Beam search shares even more: beams part, die and
//! fork again, and what they have in common is most of their text.
//!
//! @show lib/decode/beam_search.cpp:search

//! @fold Four samples and four beams of one prompt
/// What sharing saves at the moment when most blocks are in use, in percent.
struct Saving {
  double samples, beams;
  std::int64_t copies;
};

Saving measure_sharing(Model& model, std::int64_t prompt_tokens, std::int64_t answer_tokens,
                       std::int64_t width, ForkMode mode) {
  auto prompt = prompt_ids(model.tokenizer(),
                           "Once upon a time there was a small fox named "
                           "Tom. Tom lived in the forest with a friend.");
  while (std::ssize(prompt) < prompt_tokens)
    prompt.insert(prompt.end(), prompt.begin() + 1, prompt.end());
  prompt.resize(std::size_t(prompt_tokens));
  BlockManagerConfig blocks =
      blocks_of(16, width * ((prompt_tokens + answer_tokens) / 16 + 3));
  blocks.fork_mode = mode;
  PagedSequences store(model.transformer(), blocks);
  GenerateOptions o;
  o.max_tokens = answer_tokens;
  o.ignore_end = true;
  o.sampling = {.temperature = 1, .seed = 5};
  generate_samples(model, store, prompt, o, width);
  const double samples = 100 * store.take_peak().saving();
  beam_search(model, store, prompt,
              {.beam_width = width, .max_tokens = answer_tokens, .ignore_end = true});
  return {samples, 100 * store.take_peak().saving(), store.n_copied()};
}

void show_sharing(Run& run, Model& model) {
  run.section("sharing");
  const std::int64_t answer = run.self_test() ? 4 : 64;
  const std::int64_t room = model.config().context_length - answer;
  run.print("{:>7} {:>9} {:>9} {:>12} {:>9} {:>9}\n", "prompt", "answer", "samples 4",
            "bound", "beams 4", "copies");
  std::vector<double> prompts, samples, beams;
  for (const std::int64_t prompt : {16, 64, 160, 320}) {
    if (prompt > (run.self_test() ? 16 : room)) continue;
    const Saving s = measure_sharing(model, prompt, answer, 4, ForkMode::copy_on_write);
    // If only whole blocks of the prompt were shared by all: 3 of 4 copies of it are saved.
    const double whole = double(prompt / 16),
                 all = std::ceil(double(prompt + answer - 1) / 16);
    prompts.push_back(double(prompt));
    samples.push_back(s.samples);
    beams.push_back(s.beams);
    run.print("{:>7} {:>9} {:>7.1f} % {:>10.1f} % {:>7.1f} % {:>9}\n", prompt, answer,
              s.samples, 100 * 3 * whole / (4 * all), s.beams, s.copies);
  }
  run.series("sharing", "prompt tokens", "blocks saved, %", prompts,
             {{"4 samples", samples}, {"4 beams", beams}});
  run.metric("saved_samples", samples.back(), "%");
  run.metric("saved_beams", beams.back(), "%");
  run.metric("saved_samples_short", samples.front(), "%");
  run.metric("saved_beams_short", beams.front(), "%");
  run.check(samples.back() > 10 && beams.back() >= samples.back(),
            "sharing saves blocks, and beams share more than samples do");
}

//! @output sharing
//! @plot sharing Blocks saved when most are in use, of those that four sequences would need without sharing.
//!
//! The longer the prompt beside the answer, the more is shared: from
//! {{saved_samples_short:.0f}} to {{saved_samples:.0f}} % for samples, and from
//! {{saved_beams_short:.0f}} to {{saved_beams:.0f}} % for beams. The paper measured 6.1 to 9.8 % and
//! 37.6 to 55.2 % on Alpaca, where prompts are about 19 tokens long, and more on ShareGPT, where
//! they are 161. (Section 6.3; its models are larger, which changes nothing: blocks are counted.)
//! Samples can save at most the prompt, the bound of the table; a beam of 4 can save three quarters
//! of nearly everything.
//!
//! ## A prompt that was there before
//!
//! Sharing need not end with the request. A freed block still holds its keys. If the next request
//! begins with the same tokens, why compute them again? For that, every full block is known by a
//! **hash**, chained: of its tokens *and the hash of the block before it*, because a key depends on
//! everything before it.
//!
//! @show lib/paging/prefix_cache.cpp:find
//!
//! A hash finds candidates, no more. A hit is **verified**: same tokens, same predecessor. (An engine
//! that skipped this served one user's keys to another when two hashes collided; it is bug 7 of
//! our tests.) Free blocks wait in a queue, least recently freed first, and lose their content
//! only when they are given out again: that is the whole LRU eviction. One token is never taken from
//! the cache: the last one of the prompt, for its logits are wanted.

//! @fold A question behind a system prompt, twice
struct Ttft {
  double cold_ms, warm_ms;
  std::int64_t hit;
};

Ttft measure_prefix(Model& model, std::int64_t prefix, std::int64_t question, int repeats) {
  std::vector<double> cold, warm;
  std::int64_t hit = 0;
  for (int i = 0; i < repeats; ++i) {
    std::vector<std::int32_t> text(std::size_t(prefix + question));
    for (std::size_t t = 0; t < text.size(); ++t)
      text[t] = std::int32_t(1 + (t * 7 + std::size_t(i)) % 200);
    BlockManager manager(blocks_of(16, 2 * (prefix + question) / 16 + 4));
    PagedKvCache cache(model.config(), manager, DType::f32, model.device());
    for (auto* ms : {&cold, &warm}) {
      if (ms == &warm) text.back() = 3;  // another question
      ms->push_back(milliseconds([&] {
        const std::int64_t s = manager.open(text, std::ssize(text)).value();
        hit = manager.length(s);
        ForwardBatch batch;
        batch.add(s, hit, std::span(text).subspan(std::size_t(hit)));
        model.transformer().forward(batch, cache);
        manager.stored(s, text);
        manager.close(s);
      }));
    }
  }
  return {median(cold), median(warm), hit};
}

void show_prefix(Run& run, Model& model) {
  run.section("prefix");
  run.print("{:>14} {:>10} {:>9} {:>14} {:>14} {:>8}\n", "system prompt", "question",
            "found", "cold TTFT, ms", "warm TTFT, ms", "ratio");
  std::vector<double> lengths, cold, warm;
  for (const std::int64_t prefix : {32, 128, 256, 384}) {
    if (prefix > (run.self_test() ? 32 : model.config().context_length - 20)) continue;
    const Ttft t = measure_prefix(model, prefix, 16, run.self_test() ? 1 : 5);
    lengths.push_back(double(prefix));
    cold.push_back(t.cold_ms);
    warm.push_back(t.warm_ms);
    run.print("{:>14} {:>10} {:>9} {:>14.2f} {:>14.2f} {:>7.1f}x\n", prefix, 16, t.hit,
              t.cold_ms, t.warm_ms, t.cold_ms / t.warm_ms);
    run.check(t.hit == prefix,
              fmt::format("all {} tokens of the system prompt were found", prefix));
  }
  run.series("prefix", "tokens in common", "TTFT, ms", lengths,
             {{"cold", cold}, {"warm", warm}});
  run.metric("warm_gain", cold.back() / warm.back(), "x");
  run.metric("warm_prefix", lengths.back());
}

//! @output prefix
//! @plot prefix Time to first token of a question of 16 tokens behind a system prompt, first time and second time.
//! @expect warm_gain > 2
//!
//! With {{warm_prefix:.0f}} tokens in common the first token comes **{{warm_gain:.0f}} times sooner**.
//! The warm line is nearly flat: only the question is computed. A chat is the same thing turn after
//! turn, because blocks of the *answer* are hashed as they fill.
//!
//! ## How large should a block be?
//!
//! Small blocks waste less and find more of a prefix; large blocks need shorter tables, fewer hash
//! look-ups, and let a kernel read longer runs. The same load as before, with a system prompt of 100
//! tokens before every prompt:

void show_block_size(Run& run) {
  run.section("block_size");
  auto requests = chat_load(run.self_test() ? 40 : 300);
  for (Request& r : requests) {
    r.prompt.resize(std::min<std::size_t>(r.prompt.size(), 900));
    r.prompt.insert(r.prompt.begin(), 100, 7);
  }
  run.print("{:>10} {:>9} {:>17} {:>12} {:>13}\n", "block_size", "wasted",
            "found, a request", "tokens/s", "preemptions");
  std::vector<double> sizes, wasted, rate;
  for (const std::int64_t size : {1, 4, 8, 16, 32, 64, 128, 256}) {
    BlockManager manager(blocks_of(size, kMemory / size));
    PagedKvSpace kv(manager);
    const Served s = serve(kv, requests, 256);
    sizes.push_back(double(size));
    // Shared positions are stored once but counted for each: see lib/batching/load.hpp.
    wasted.push_back(100 * double(size - 1) / 2 * s.report.slot_utilisation * 256 /
                     double(kMemory));
    rate.push_back(s.report.output_tokens_per_s);
    run.print("{:>10} {:>7.1f} % {:>17.1f} {:>12.0f} {:>13}\n", size, wasted.back(),
              double(s.report.cached_tokens) / double(requests.size()), rate.back(),
              s.report.n_preemptions);
  }
  run.series("block_size", "block size", "output tokens/s", sizes, {{"tokens/s", rate}});
  run.metric("rate_16", rate[3], "tokens/s");
  run.metric("rate_256", rate.back(), "tokens/s");
  run.metric("loss_256", 100 * (1 - rate.back() / rate[3]), "%");
}

//! @output block_size
//! @plot block_size Throughput in the same memory. Half a block for each sequence is lost, and prefixes are found in whole blocks only.
//! @expect loss_256 > 0
//!
//! (Wasted: half a block for each running sequence, as a share of all memory.) Between 1 and 32
//! little changes; at 256 the throughput is {{loss_256:.0f}} % lower. 16 is vLLM's default. On a GPU
//! blocks of 1 cost more than here, since a kernel loads runs of rows with wide instructions.
//!
//! ## Where it does not help
//!
//! - **One sequence.** A laptop that runs one chat needs no pages; llama.cpp has none.
//! - **When memory is not what limits.** With short texts and a small batch the contiguous cache
//!   fits, and is simpler.
//! - **Prompts that differ in the first token.** The chain breaks at the first difference: a date at
//!   the top of a system prompt makes every request a miss. Put what varies last.

void chapter(Run& run) {
  const auto device = make_device(run.device());
  run.measured_on(device->description());
  const auto model = load_model(run.model(), *device);
  show_table(run);
  check_same(run, *model);
  show_cost(run, *model);
  show_memory(run);
  show_sharing(run, *model);
  show_prefix(run, *model);
  show_block_size(run);
}

int main(int argc, char** argv) {
  return run_chapter("05_paged_attention", chapter, argc, argv);
}

//! ## What a production engine does differently
//!
//! - It sizes the pool from what is left of a GPU's memory after weights and activations (vLLM:
//!   `gpu_memory_utilization`), not from a number in the source.
//! - It can move a victim's blocks to host memory (*swapping*) in place of computing them again.
//! - SGLang and TGI keep prefixes in a *radix tree*, which also finds parts of a block; TensorRT-LLM
//!   copies a partly matching block.
//! - Its kernels read keys in a layout made for their loads (vLLM: a head's dimension split by 16
//!   bytes), and its blocks may be spread over several GPUs.
//!
//! ## Further reading
//!
//! - Kwon et al. 2023, *Efficient Memory Management for Large Language Model Serving with
//!   PagedAttention*, arXiv:2309.06180: sections 3 (waste), 4 (blocks, copy-on-write, preemption),
//!   6.3 (sharing), 7.1 and 7.2 (cost of the table, block size).
//! - vLLM's design document *Automatic Prefix Caching*: chained hashes and the free queue.
//! - Zheng et al. 2024, *SGLang*, arXiv:2312.07104, section 3: the radix tree.
//! - Prabhu et al. 2024, *vAttention*, arXiv:2405.04437: paging by the GPU's own page tables.
