// 8-bit activations on the built-in model, its matrices quantised to Q8_0 here.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lab/core/half.hpp"
#include "lab/core/parallel.hpp"
#include "lab/kv_cache/contiguous.hpp"
#include "lab/model/find_model.hpp"
#include "lab/model/model.hpp"
#include "support/catch.hpp"

using namespace lab;

namespace {

/// F16 rows as Q8_0: for each 32 columns a scale and 32 codes. (GGUF v3, block_q8_0)
Buffer quantise(HostWeightView w) {
  REQUIRE(w.dtype == DType::f16);
  Buffer out(std::size_t(w.rows * row_bytes(DType::q8_0, w.cols)));
  std::byte* to = out.data();
  const auto* from = reinterpret_cast<const Half*>(w.data);
  for (std::int64_t i = 0; i < w.rows * w.cols; i += 32) {
    float largest = 0;
    for (int c = 0; c < 32; ++c)
      largest = std::max(largest, std::abs(to_float(from[i + c])));
    const Half scale = to_half(largest / 127);
    std::memcpy(to, &scale, 2);
    for (int c = 0; c < 32; ++c)
      to[2 + c] = std::byte(std::int8_t(
          largest == 0 ? 0 : std::lround(to_float(from[i + c]) / to_float(scale))));
    to += 34;
  }
  return out;
}

/// The built-in target with quantised matrices, on a CPU with the given activations.
class Quantised {
 public:
  explicit Quantised(Activations activations)
      : source_(open_model(find_model(std::string(LAB_MODELS) + "/target.gguf"))),
        device_(make_device("cpu", activations)) {
    for (LayerWeights& l : source_.weights.layers)
      for (HostWeightView* w : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down})
        replace(*w);
    replace(source_.weights.output);
    transformer_ = std::make_unique<Transformer>(source_.config, source_.weights, *device_);
  }
  Transformer& transformer() { return *transformer_; }

 private:
  void replace(HostWeightView& w) {
    buffers_.push_back(quantise(w));
    w.dtype = DType::q8_0;
    w.data = buffers_.back().data();
  }
  ModelSource source_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Transformer> transformer_;
};

std::vector<float> all_logits(Transformer& transformer) {
  std::vector<std::int32_t> ids(96);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int32_t(37 * i % 900 + 50);
  ForwardBatch batch;
  batch.add(0, 0, ids, true);
  const auto cache = make_contiguous_cache(transformer, 1, 96);
  const auto logits = transformer.forward(batch, *cache);
  return {logits.data, logits.data + logits.size()};
}

/// |a - b| / |b| over all logits.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    size += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("8-bit activations move the logits by their rounding and no more") {
  Quantised exact(Activations::f32), fast(Activations::int8);
  const double moved =
      relative_difference(all_logits(fast.transformer()), all_logits(exact.transformer()));
  CAPTURE(moved);
  CHECK(moved > 1e-4);  // it is another computation: int8 is really used
  CHECK(moved < 0.03);  // 0.5 to 1.7 % a layer, and errors of layers partly cancel
}

TEST_CASE("8-bit activations give the same bits on any number of threads") {
  Quantised fast(Activations::int8);
  const int before = n_threads();
  set_n_threads(1);
  const auto one = all_logits(fast.transformer());
  set_n_threads(2);
  const auto two = all_logits(fast.transformer());
  set_n_threads(before);
  CHECK(one == two);
}
