#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "lab/core/buffer.hpp"
#include "lab/core/cpu_name.hpp"
#include "lab/core/error.hpp"
#include "lab/device/kv_type.hpp"
#include "lab/device/make_device.hpp"
#include "lab/kernels/add.hpp"
#include "lab/kernels/argmax.hpp"
#include "lab/kernels/attention.hpp"
#include "lab/kernels/embedding.hpp"
#include "lab/kernels/kv_append.hpp"
#include "lab/kernels/machine.hpp"
#include "lab/kernels/rms_norm.hpp"

namespace lab {
namespace {

/// This device's memory is the host's.
template <class T, int Rank>
HostView<T, Rank> host(DeviceView<T, Rank> v) {
  return {v.data, v.shape};
}

class PackedMatrix final : public Matrix {
 public:
  PackedMatrix(HostWeightView weights, Arena& arena) : linear(weights, &arena) {}
  std::int64_t rows() const override { return linear.rows(); }
  std::int64_t cols() const override { return linear.cols(); }
  std::size_t bytes() const override { return linear.bytes(); }

  const cpu::Linear linear;
};

/// Weights read where they are, as a mapped file has them.
class Table final : public Matrix {
 public:
  explicit Table(HostWeightView w) : weights(w) {}
  std::int64_t rows() const override { return weights.rows; }
  std::int64_t cols() const override { return weights.cols; }
  std::size_t bytes() const override { return std::size_t(weights.bytes()); }

  const HostWeightView weights;
};

const cpu::Linear& packed(const Matrix& m) {
  return static_cast<const PackedMatrix&>(m).linear;
}

class RecordedFunction final : public RecordedWork {
 public:
  explicit RecordedFunction(std::function<void()> work) : work_(std::move(work)) {}
  void run() override { work_(); }

 private:
  std::function<void()> work_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(Activations activations) : activations_(activations) {}

  std::string name() const override { return "cpu"; }
  std::string description() const override { return cpu_name(); }
  double read_bandwidth(std::size_t bytes) override { return cpu::read_bandwidth(bytes); }
  double flop_peak() override { return cpu::flop_peak(); }

  std::byte* allocate(std::size_t bytes) override { return Buffer(bytes).release(); }
  void release(std::byte* p) noexcept override { free_buffer(p); }
  void upload(std::byte* to, const void* from, std::size_t bytes) override {
    std::copy_n(static_cast<const std::byte*>(from), bytes, to);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memmove(to, from, bytes);
  }
  const std::byte* download(const std::byte* from, std::size_t) override { return from; }
  void synchronize() override {}
  std::unique_ptr<RecordedWork> record(std::function<void()> work) override {
    return std::make_unique<RecordedFunction>(std::move(work));
  }

  std::shared_ptr<const Matrix> matrix(HostWeightView weights, Arena& arena) override {
    return std::make_shared<PackedMatrix>(weights, arena);
  }
  std::shared_ptr<const Matrix> table(HostWeightView weights,
                                      std::shared_ptr<const Matrix>) override {
    return std::make_shared<Table>(weights);
  }

  void embedding(DeviceView<float, 2> out, DeviceView<const std::int32_t, 1> ids,
                 const Matrix& table) override {
    cpu::embedding(host(out), host(ids), static_cast<const Table&>(table).weights);
  }
  void rms_norm(DeviceView<float, 2> out, DeviceView<const float, 2> x,
                DeviceView<const float, 1> weight, float eps) override {
    cpu::rms_norm(host(out), host(x), host(weight), eps);
  }
  void rope_angles(DeviceView<float, 2> cos, DeviceView<float, 2> sin,
                   DeviceView<const std::int32_t, 1> positions,
                   DeviceView<const float, 1> inv_freq) override {
    cpu::rope_angles(host(cos), host(sin), host(positions), host(inv_freq));
  }
  void rope(DeviceView<float, 3> x, DeviceView<const float, 2> cos,
            DeviceView<const float, 2> sin, RopeLayout layout) override {
    cpu::rope(host(x), host(cos), host(sin), layout);
  }
  void linear(std::initializer_list<Projection> products,
              DeviceView<const float, 2> x) override {
    std::array<cpu::Projection, 4> group;
    LAB_CHECK(products.size() <= group.size(),
              "linear: {} products of one input; at most {} go together", products.size(),
              group.size());
    std::size_t n = 0;
    for (const Projection& p : products) group[n++] = {&packed(p.weights), host(p.y)};
    cpu::linear_group(std::span(group).first(n), host(x), activations_);
  }
  void swiglu(DeviceView<float, 2> y, const Matrix& gate, const Matrix& up,
              DeviceView<const float, 2> x) override {
    cpu::swiglu(host(y), packed(gate), packed(up), host(x), activations_);
  }
  void add(DeviceView<float, 2> out, DeviceView<const float, 2> a,
           DeviceView<const float, 2> b) override {
    cpu::add(host(out), host(a), host(b));
  }
  void kv_append(KvView cache, DeviceView<const float, 3> x,
                 DeviceView<const std::int32_t, 1> slots) override {
    with_kv_type(cache.dtype, [&]<class T>() {
      cpu::kv_append<T>(host(cache.as<T>()), host(x), host(slots));
    });
  }
  void attention(DeviceView<float, 3> out, DeviceView<const float, 3> q, KvView k, KvView v,
                 float scale, DeviceView<const std::int32_t, 1> kv_len) override {
    with_kv_type(k.dtype, [&]<class T>() {
      cpu::attention<T>(host(out), host(q), host(k.as<const T>()).rows(0, kv_len.data[0]),
                        host(v.as<const T>()).rows(0, kv_len.data[0]), scale);
    });
  }
  void paged_attention(DeviceView<float, 3> out, DeviceView<const float, 3> q, KvBlocks k,
                       KvBlocks v, const PagedBatch<Space::device>& batch,
                       float scale) override {
    with_kv_type(k.dtype, [&]<class T>() {
      cpu::paged_attention<T>(host(out), host(q), host(k.as<const T>()),
                              host(v.as<const T>()),
                              {host(batch.query_starts), host(batch.kv_lens),
                               host(batch.block_tables), batch.max_queries},
                              scale);
    });
  }
  void argmax(DeviceView<std::int32_t, 1> out, DeviceView<const float, 2> x) override {
    cpu::argmax(host(out), host(x));
  }

 private:
  Activations activations_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(Activations activations) {
  return std::make_unique<CpuDevice>(activations);
}

Device& cpu_device() {
  static CpuDevice device(Activations::f32);
  return device;
}

}  // namespace lab
