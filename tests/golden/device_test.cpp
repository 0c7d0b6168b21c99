// One model, every device: the emulated CUDA kernels must say what the CPU says.
#include <cmath>

#include "lab/core/error.hpp"
#include "lab/core/rng.hpp"
#include "lab/decode/generate.hpp"
#include "lab/decode/recorded_decode.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "support/catch.hpp"
#include "support/tiny_model.hpp"

using namespace lab;
using namespace lab::test;

namespace {

/// The GPU where there is one, else the emulator.
std::unique_ptr<Device> gpu_device(AttentionKernel attention = AttentionKernel::exact) {
  try {
    return make_device("cuda", Activations::f32, attention);
  } catch (const UnavailableError&) {
    return make_device("simt", Activations::f32, attention);
  }
}

std::vector<float> last_row(HostView<const float, 2> logits) {
  const auto row = logits[logits.shape[0] - 1];
  return {row.data, row.data + row.shape[0]};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double(a[i]) - double(b[i]));
    if (std::isnan(d) || d > worst) worst = d;  // a NaN stays
  }
  return worst;
}

std::unique_ptr<Model> load_tiny(DType dtype, bool tied, Device& device) {
  Config config = tiny_config();
  config.head_dim = 16;
  TinyOptions options;
  options.dtype = dtype;
  options.tied = tied;
  const TempFolder folder;
  tiny_gguf(make_tiny_model(config, options)).write(folder / "m.gguf");
  return load_model((folder / "m.gguf").string(), device);
}

std::vector<std::int32_t> random_ids(std::int64_t n) {
  Rng rng(7);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  for (auto& id : ids) id = static_cast<std::int32_t>(rng.below(270));
  return ids;
}

std::vector<std::int32_t> greedy(Model& model, const std::string& prompt, std::int64_t n) {
  GenerateOptions options;
  options.max_tokens = n;
  options.ignore_end = true;
  const auto ids = prompt_ids(model.tokenizer(), prompt);
  const auto cache = make_contiguous_cache(
      model.transformer(), 1, positions_needed(model.config(), std::ssize(ids), n));
  return generate(model, *cache, ids, options).ids;
}

}  // namespace

TEST_CASE("the built-in model writes the same 64 tokens on every device") {
  const std::string path = std::string(LAB_MODELS) + "/target.gguf";
  const std::string prompt = GENERATE("Once upon a time", "What is 12+7?");
  const auto device = gpu_device();
  CAPTURE(device->description());
  const auto host = load_model(path), other = load_model(path, *device);
  CHECK(greedy(*host, prompt, 64) == greedy(*other, prompt, 64));
}

TEST_CASE("logits of every weight type and tie agree between devices") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const bool tied = GENERATE(true, false);
  const DType kv = GENERATE(DType::f32, DType::f16, DType::bf16);
  const auto device = gpu_device();
  CAPTURE(name(dtype), tied, name(kv), device->description());
  const auto host = load_tiny(dtype, tied, cpu_device()),
             other = load_tiny(dtype, tied, *device);
  const auto ids = random_ids(33);
  const auto logits = [&](Model& model) {
    // Prefill in unequal pieces, then single steps: every path of attention and linear.
    const auto cache = make_contiguous_cache(model.transformer(), 1, 40, kv);
    std::vector<float> all;
    std::int64_t stored = 0;
    for (const std::int64_t n : {17, 3, 9, 1, 1, 2}) {
      const auto fresh = std::span(ids).subspan(std::size_t(stored), std::size_t(n));
      const auto row =
          last_row(model.transformer().forward(single_sequence(stored, fresh), *cache));
      all.insert(all.end(), row.begin(), row.end());
      stored += n;
    }
    return all;
  };
  // In a 16-bit cache a difference in the last bit of f32 can move an element to the next
  // 16-bit number.
  CHECK(largest_difference(logits(*host), logits(*other)) <=
        (kv == DType::f32 ? 1e-4 : 2e-3));
}

TEST_CASE("prefill on tensor cores: the built-in model's logits move by rounding alone") {
  const std::string path = std::string(LAB_MODELS) + "/target.gguf";  // head_dim is 32
  const auto exact = gpu_device(), flash = gpu_device(AttentionKernel::flash);
  CAPTURE(exact->description());
  const auto host = load_model(path), plain = load_model(path, *exact),
             fast = load_model(path, *flash);
  const auto ids = random_ids(48);
  const auto logits = [&](Model& model, DType kv) {
    const auto cache = make_contiguous_cache(model.transformer(), 1, 48, kv);
    return last_row(model.transformer().forward(single_sequence(0, ids), *cache));
  };
  const auto reference = logits(*host, DType::f32);
  CHECK(logits(*plain, DType::f32) == logits(*fast, DType::f32));
  // Measured under simt: 0.005 for f16, whose numbers have 11 bits, and 0.05 for bf16's 8.
  for (const auto& [kv, most] : {std::pair{DType::f16, 0.015}, {DType::bf16, 0.15}}) {
    const auto got = logits(*fast, kv);
    const double of_kernel = largest_difference(got, logits(*plain, kv));
    const double of_all = largest_difference(got, reference);
    CAPTURE(name(kv), of_kernel, of_all);
    CHECK(of_kernel > 0);  // another kernel did it
    CHECK(of_kernel <= most);
    CHECK(of_all <= most);
  }
}

TEST_CASE("a batch of several sequences agrees between devices") {
  const auto device = gpu_device();
  const auto ids = random_ids(24);
  const auto logits = [&](Model& model) {
    const auto cache = make_contiguous_cache(model.transformer(), 3, 16);
    ForwardBatch prompts, steps;
    prompts.add(2, 0, std::span(ids).first(5), true);
    prompts.add(0, 0, std::span(ids).subspan(5, 9));
    model.transformer().forward(prompts, *cache);
    steps.add(0, 9, std::span(ids).subspan(14, 1));
    steps.add(1, 0, std::span(ids).subspan(15, 4));
    steps.add(2, 5, std::span(ids).subspan(19, 2), true);
    const auto view = model.transformer().forward(steps, *cache);
    return std::vector<float>(view.data, view.data + view.size());
  };
  const auto host = load_tiny(DType::f32, true, cpu_device()),
             other = load_tiny(DType::f32, true, *device);
  CHECK(largest_difference(logits(*host), logits(*other)) <= 1e-4);
}

TEST_CASE("recorded decode steps give the logits of ordinary ones, bit for bit") {
  const bool emulated = GENERATE(false, true);
  const auto device = emulated ? gpu_device() : make_device("cpu");
  CAPTURE(device->description());
  const auto model = load_tiny(DType::f16, true, *device);
  Transformer& transformer = model->transformer();
  const auto ids = random_ids(14);
  const auto plain = make_contiguous_cache(transformer, 1, 20),
             recorded = make_contiguous_cache(transformer, 1, 20);
  prefill(transformer, *plain, std::span(ids).first(4));
  prefill(transformer, *recorded, std::span(ids).first(4));
  RecordedDecode decode(transformer, *recorded);
  for (std::int64_t t = 4; t < std::ssize(ids); ++t) {
    const auto id = ids[std::size_t(t)];
    const auto expected =
        last_row(transformer.forward(single_sequence(t, {&id, 1}), *plain));
    CAPTURE(t);
    CHECK(last_row(decode.step(t, id)) == expected);
    if (t ==
        8) {  // a larger pass moves the transformer's memory: the record is out of date
      const auto other = make_contiguous_cache(transformer, 1, 40);
      prefill(transformer, *other, random_ids(40));
    }
  }
}

TEST_CASE("a step that does not fit is refused, and the recorded work still runs") {
  const auto device = gpu_device();
  const auto model = load_tiny(DType::f32, true, *device);
  const auto cache = make_contiguous_cache(model->transformer(), 1, 4);
  RecordedDecode decode(model->transformer(), *cache);
  for (std::int64_t t = 0; t < 3; ++t) decode.step(t, 5);
  CHECK_THROWS_WITH(decode.step(7, 5), ContainsSubstring("goes on at position 7"));
  CHECK_NOTHROW(decode.step(3, 5));
  CHECK_THROWS_WITH(decode.step(4, 5), ContainsSubstring("cache holds 4"));
}
