// Whole models: binding weights, vocabularies, and opening files and folders of both
// formats.
#include "lab/model/weights.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "lab/core/error.hpp"
#include "lab/kernels/dequantize.hpp"
#include "lab/model/gguf_model.hpp"
#include "lab/model/model_source.hpp"
#include "support/catch.hpp"
#include "support/tiny_model.hpp"

using namespace lab;
using namespace lab::test;

namespace {

std::vector<float> values_of(const HostWeightView& w) {
  std::vector<float> out(static_cast<std::size_t>(w.rows * w.cols));
  cpu::dequantize({out.data(), {w.rows * w.cols}}, w.dtype, w.data);
  return out;
}

const std::vector<float>& stored(const TinyModel& m, const std::string& hf_name) {
  const auto it = std::ranges::find(m.tensors, hf_name, &TinyTensor::hf_name);
  REQUIRE(it != m.tensors.end());
  return it->values;
}

/// The model's tensors under their Hugging Face names; `data` keeps their bytes.
std::vector<TensorInfo> hf_tensors(const TinyModel& m,
                                   std::vector<std::vector<std::byte>>& data) {
  std::vector<TensorInfo> tensors;
  data.clear();
  for (const TinyTensor& t : m.tensors) {
    data.push_back(encode(t.values, m.options.dtype));
    tensors.push_back({t.hf_name, std::string(name(m.options.dtype)), m.options.dtype,
                       t.shape, data.back()});
  }
  return tensors;
}

/// Binds the tiny model after `change`.
void check_refused(const std::function<void(std::vector<TensorInfo>&)>& change,
                   const std::string& message) {
  const TinyModel m = make_tiny_model();
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorInfo> tensors = hf_tensors(m, data);
  change(tensors);
  CHECK_THROWS_WITH(bind_weights(Checkpoint(tensors), m.config, WeightNames::hf),
                    ContainsSubstring(message));
}

TensorInfo& named(std::vector<TensorInfo>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &TensorInfo::name);
}

void check_same(const Weights& w, const TinyModel& m, const std::string& hf_prefix) {
  for (std::size_t i = 0; i < w.layers.size(); ++i) {
    const LayerWeights& layer = w.layers[i];
    const std::string p = hf_prefix + std::to_string(i) + ".";
    CHECK(layer.attn_norm == stored(m, p + "input_layernorm.weight"));
    CHECK(layer.ffn_norm == stored(m, p + "post_attention_layernorm.weight"));
    CHECK(values_of(layer.v) == stored(m, p + "self_attn.v_proj.weight"));
    CHECK(values_of(layer.o) == stored(m, p + "self_attn.o_proj.weight"));
    CHECK(values_of(layer.gate) == stored(m, p + "mlp.gate_proj.weight"));
    CHECK(values_of(layer.up) == stored(m, p + "mlp.up_proj.weight"));
    CHECK(values_of(layer.down) == stored(m, p + "mlp.down_proj.weight"));
  }
  CHECK(w.output_norm == stored(m, "model.norm.weight"));
  CHECK(values_of(w.token_embd) == stored(m, "model.embed_tokens.weight"));
}

}  // namespace

TEST_CASE("the Q/K permutation of GGUF: 2 heads of 8") {
  TinyTensor t{"", "", {16, 1}, {}, 2};
  for (int i = 0; i < 16; ++i) t.values.push_back(float(i));
  CHECK(permuted_rows(t) ==
        std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15});
}

TEST_CASE("one model opens as GGUF, as a folder and as shards, with the same weights") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const bool tied : {true, false}) {
      CAPTURE(name(dtype), tied);
      const TinyModel m =
          make_tiny_model(tiny_config(), {.seed = 5, .dtype = dtype, .tied = tied});
      const TempFolder folder;
      tiny_gguf(m).write(folder / "tiny.gguf");
      write_tiny_hf(m, folder / "hf");
      write_tiny_hf(m, folder / "sharded", 2);
      for (const char* path : {"tiny.gguf", "hf", "hf/model.safetensors", "sharded"}) {
        CAPTURE(path);
        const ModelSource source = open_model(folder / path);
        const bool gguf = std::string(path) == "tiny.gguf";
        CHECK(source.gguf.has_value() == gguf);
        CHECK(source.config.rope.layout ==
              (gguf ? RopeLayout::interleaved : RopeLayout::half_split));
        CHECK(source.config.name == "tiny");
        CHECK(source.config.vocab_size == 272);
        CHECK(source.weights.tied == tied);
        CHECK((source.weights.output.data == source.weights.token_embd.data) == tied);
        CHECK(source.weights.layers.size() == 2);
        CHECK(source.weights.layers[0].q.dtype == dtype);
        check_same(source.weights, m, "model.layers.");
        const auto& q = stored(m, "model.layers.1.self_attn.q_proj.weight");
        const HostWeightView bound = source.weights.layers[1].q;
        CHECK(bound.rows == 80);
        CHECK(bound.cols == 48);
        CHECK((values_of(bound) == q) == !gguf);  // GGUF has the rows in another order
        if (!tied) CHECK(values_of(source.weights.output) == stored(m, "lm_head.weight"));
      }
    }
  }
}

TEST_CASE("GGUF and Hugging Face give the same vocabulary") {
  const TinyModel m = make_tiny_model(tiny_config(), {.chat_template = "{{ messages }}"});
  const TempFolder folder;
  tiny_gguf(m).write(folder / "tiny.gguf");
  write_tiny_hf(m, folder / "hf");
  const Vocab a = open_model(folder / "tiny.gguf").vocab,
              b = open_model(folder / "hf").vocab;
  const Vocab expected = mini_vocab();
  for (const Vocab* v : {&a, &b}) {
    CHECK(v->pre == "smollm");
    CHECK(v->tokens == expected.tokens);
    CHECK(v->types == expected.types);
    CHECK(v->merges == expected.merges);
    CHECK(v->bos == 1);
    CHECK(v->eos == 2);
    CHECK(v->end_of_generation == std::vector<std::int32_t>{0, 2});
    CHECK(!v->add_bos);
    CHECK(!v->ignore_merges);
    CHECK(v->chat_template == "{{ messages }}");
  }
}

TEST_CASE("the built-in models open") {
  for (const char* name : {"target.gguf", "draft.gguf"}) {
    const ModelSource source = open_model(std::string(LAB_MODELS) + "/" + name);
    CHECK(source.config.n_heads / source.config.n_kv_heads != source.config.n_kv_heads);
    CHECK(std::ssize(source.vocab.tokens) == source.config.vocab_size);
    CHECK(source.vocab.pre == "smollm");
  }
}

TEST_CASE("llama3 scaling gives the same divisors through both formats") {
  Config c = tiny_config();
  c.rope.base = 500000;
  const TinyModel m = make_tiny_model(c, {.llama3 = Llama3RopeScaling{8, 1, 4, 64}});
  const TempFolder folder;
  tiny_gguf(m).write(folder / "tiny.gguf");
  write_tiny_hf(m, folder / "hf");
  const std::vector<float> divisors = open_model(folder / "tiny.gguf").config.rope.divisors;
  CHECK(divisors.size() == 5);
  CHECK(divisors.front() == 1);
  CHECK(divisors.back() == 8);
  CHECK(open_model(folder / "hf").config.rope.divisors == divisors);
}

// ----- bind

TEST_CASE("bind says what was expected and what was found") {
  const std::vector<std::byte> data(24);
  const Checkpoint c({{"blk.0.attn_k.weight", "F32", DType::f32, {3, 2}, data}});
  const std::vector<std::int64_t> right = {3, 2}, swapped = {2, 3}, longer = {3, 2, 1};
  CHECK(&c.bind("blk.0.attn_k.weight", {}, right) == &c.tensors()[0]);
  CHECK_THROWS_WITH(
      c.bind("blk.0.attn_k.weight", {}, swapped),
      ContainsSubstring("'blk.0.attn_k.weight': expected shape (2, 3), found (3, 2)"));
  CHECK_THROWS_AS(c.bind("blk.0.attn_k.weight", {}, longer), Error);
  const std::vector<DType> allowed = {DType::f16, DType::q8_0};
  CHECK_THROWS_WITH(c.bind("blk.0.attn_k.weight", allowed, right),
                    ContainsSubstring("expected type F16 or Q8_0, found F32"));
  CHECK_THROWS_WITH(
      c.bind("blk.0.attn_q.weight", {}, right),
      ContainsSubstring("'blk.0.attn_q.weight' is missing: the file has 1 tensors, "
                        "the nearest name is 'blk.0.attn_k.weight'"));
  CHECK_THROWS_WITH(Checkpoint().bind("a", {}, right), ContainsSubstring("has 0 tensors;"));
  CHECK(c.find("nothing") == nullptr);
}

TEST_CASE("a checkpoint refuses two tensors of one name") {
  const TensorInfo t{"t", "F32", DType::f32, {0}, {}};
  CHECK_THROWS_WITH(Checkpoint({t, t}), ContainsSubstring("'t' occurs twice"));
}

TEST_CASE("weights that are missing, misshapen or unusable are refused by name") {
  const std::string q = "model.layers.1.self_attn.q_proj.weight";
  check_refused([&](auto& t) { std::erase_if(t, [&](auto& i) { return i.name == q; }); },
                "'" + q + "' is missing");
  check_refused(
      [&](auto& t) {
        named(t, q).shape = {48, 80};
      },
      "expected shape (80, 48), found (48, 80)");
  check_refused(
      [&](auto& t) { named(t, q).dtype.reset(), named(t, q).type_name = "F8_E4M3"; },
      "has type F8_E4M3");
  check_refused([&](auto& t) { named(t, "model.norm.weight").dtype = DType::q8_0; },
                "expected type F32 or F16 or BF16");
  check_refused([&](auto& t) { named(t, q).dtype = DType::q4_0; },
                "are not 80 rows of 48 elements in whole");
  check_refused([&](auto& t) { named(t, q).data = named(t, q).data.first(4); },
                "are not 80 rows of 48 elements in whole");
}

TEST_CASE("weights that the model would ignore are refused by name") {
  const TensorInfo bias{
      "model.layers.0.self_attn.q_proj.bias", "F32", DType::f32, {80}, {}};
  check_refused([&](auto& t) { t.push_back(bias); }, "q_proj.bias' is not part of");
  TensorInfo extra_layer = bias;
  extra_layer.name = "model.layers.2.input_layernorm.weight";
  check_refused([&](auto& t) { t.push_back(extra_layer); }, "model.layers.2");
}

TEST_CASE("stored RoPE constants are not weights") {
  const TinyModel m = make_tiny_model();
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorInfo> tensors = hf_tensors(m, data);
  tensors.push_back(
      {"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", DType::f32, {5}, {}});
  CHECK(bind_weights(Checkpoint(tensors), m.config, WeightNames::hf).layers.size() == 2);
}

TEST_CASE("the output is tied by absence, or by configuration although it is there") {
  const TinyModel m = make_tiny_model(tiny_config(), {.tied = false});
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorInfo> tensors = hf_tensors(m, data);
  Config c = m.config;
  const Weights untied = bind_weights(Checkpoint(tensors), c, WeightNames::hf);
  CHECK(!untied.tied);
  CHECK(untied.output.data != untied.token_embd.data);
  c.tie_embeddings = true;
  const Weights redundant = bind_weights(Checkpoint(tensors), c, WeightNames::hf);
  CHECK(redundant.tied);
  CHECK(redundant.output.data == redundant.token_embd.data);
  c.tie_embeddings = false;
  std::erase_if(tensors, [](const TensorInfo& t) { return t.name == "lm_head.weight"; });
  CHECK(bind_weights(Checkpoint(tensors), c, WeightNames::hf).tied);
}

TEST_CASE("matrices that are not aligned to their elements are copied") {
  const TinyModel m = make_tiny_model();
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorInfo> tensors = hf_tensors(m, data);
  std::vector<std::vector<std::byte>> shifted;
  for (TensorInfo& t : tensors) {
    auto& bytes = shifted.emplace_back(t.data.size() + 1);
    std::memcpy(bytes.data() + 1, t.data.data(), t.data.size());
    t.data = std::span<const std::byte>(bytes).subspan(1);
  }
  const Weights w = bind_weights(Checkpoint(tensors), m.config, WeightNames::hf);
  CHECK(w.copies.size() == 15);  // the embedding and 7 matrices a layer
  CHECK(reinterpret_cast<std::uintptr_t>(w.layers[0].q.data) % 4 == 0);
  check_same(w, m, "model.layers.");
}
