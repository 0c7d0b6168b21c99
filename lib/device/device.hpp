/// @file
/// The seam behind which the arithmetic happens: this CPU, an NVIDIA GPU, or the emulator
/// that runs the GPU's kernels on this CPU.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "lab/core/buffer.hpp"
#include "lab/core/dtype.hpp"
#include "lab/core/view.hpp"
#include "lab/device/memory.hpp"
#include "lab/kernels/linear.hpp"
#include "lab/kernels/paged_attention.hpp"
#include "lab/kernels/rope.hpp"

namespace lab {

/// A weight matrix (rows, cols) = (out, in) in a device's memory and its kernels' order.
class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t cols() const = 0;
  virtual std::size_t bytes() const = 0;  ///< what one multiplication reads
};

/// One of several products of the same input: y (T, rows) = x (T, cols) weights^T.
struct Projection {
  const Matrix& weights;
  DeviceView<float, 2> y;
};

/// Keys or values of one layer and sequence, whatever they are stored as: (S, K, Dh).
struct KvView {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::array<std::int64_t, 3> shape{};

  template <class T>
  DeviceView<T, 3> as() const {
    return {reinterpret_cast<T*>(data), shape};
  }
};

/// Keys or values of one layer in blocks: (n_blocks, block_size, K, Dh).
struct KvBlocks {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::array<std::int64_t, 4> shape{};

  template <class T>
  DeviceView<T, 4> as() const {
    return {reinterpret_cast<T*>(data), shape};
  }
  /// As one sequence of rows, slot after slot: block * block_size + row in the block.
  KvView slots() const { return {data, dtype, {shape[0] * shape[1], shape[2], shape[3]}}; }
};

/// Work that was recorded once and is repeated as a whole: a CUDA graph.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Does the work again, on what the same addresses hold now.
  virtual void run() = 0;
};

/// Where a model runs. The operations have the shapes and the errors of their kernels
/// (kernels/include/lab/kernels); they are done in the order of the calls, and may still be
/// under way when a call returns. Whoever reads a result on the host uses download().
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual std::string name() const = 0;         ///< "cpu", "cuda" or "simt"
  virtual std::string description() const = 0;  ///< the hardware's name

  /// Bytes per second read from memory, measured now over a buffer of `bytes`.
  virtual double read_bandwidth(std::size_t bytes) = 0;
  /// f32 operations per second on registers, measured now.
  virtual double flop_peak() = 0;

  // ----- memory
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* p) noexcept = 0;
  virtual void upload(std::byte* to, const void* from, std::size_t bytes) = 0;
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// Waits, and gives the bytes in host memory: valid until the next download.
  virtual const std::byte* download(const std::byte* from, std::size_t bytes) = 0;
  /// Waits for everything that was asked for.
  virtual void synchronize() = 0;

  /// Records what `work` asks of this device. On a CPU it is kept as a function.
  virtual std::unique_ptr<RecordedWork> record(std::function<void()> work) = 0;

  // ----- weights
  /// Packs a matrix for linear(). `weights` is not needed afterwards.
  /// @param arena  where a CPU puts it; it must outlive the matrix. A GPU has no use for it
  virtual std::shared_ptr<const Matrix> matrix(HostWeightView weights, Arena& arena) = 0;
  /// Prepares a table for embedding(). `weights` must stay alive.
  /// @param same  a matrix() of the same weights, if there is one: a GPU reads its rows
  ///              instead of keeping a second copy
  virtual std::shared_ptr<const Matrix> table(HostWeightView weights,
                                              std::shared_ptr<const Matrix> same) = 0;

  // ----- operations
  virtual void embedding(DeviceView<float, 2> out, DeviceView<const std::int32_t, 1> ids,
                         const Matrix& table) = 0;
  virtual void rms_norm(DeviceView<float, 2> out, DeviceView<const float, 2> x,
                        DeviceView<const float, 1> weight, float eps) = 0;
  virtual void rope_angles(DeviceView<float, 2> cos, DeviceView<float, 2> sin,
                           DeviceView<const std::int32_t, 1> positions,
                           DeviceView<const float, 1> inv_freq) = 0;
  virtual void rope(DeviceView<float, 3> x, DeviceView<const float, 2> cos,
                    DeviceView<const float, 2> sin, RopeLayout layout) = 0;
  /// Up to four products of the same x, which is prepared once for all.
  virtual void linear(std::initializer_list<Projection> products,
                      DeviceView<const float, 2> x) = 0;
  /// y (T, F) = silu(x gate^T) * (x up^T)
  virtual void swiglu(DeviceView<float, 2> y, const Matrix& gate, const Matrix& up,
                      DeviceView<const float, 2> x) = 0;
  virtual void add(DeviceView<float, 2> out, DeviceView<const float, 2> a,
                   DeviceView<const float, 2> b) = 0;
  virtual void kv_append(KvView cache, DeviceView<const float, 3> x,
                         DeviceView<const std::int32_t, 1> slots) = 0;
  /// @param kv_len (1): how many positions of k and v are there; the queries are the last
  ///               T of them. It is read when the operation runs, so that recorded work can
  ///               be repeated for every position.
  virtual void attention(DeviceView<float, 3> out, DeviceView<const float, 3> q, KvView k,
                         KvView v, float scale,
                         DeviceView<const std::int32_t, 1> kv_len) = 0;
  /// Attention of every sequence of a batch. What `batch` points to is read when the
  /// operation runs.
  virtual void paged_attention(DeviceView<float, 3> out, DeviceView<const float, 3> q,
                               KvBlocks k, KvBlocks v,
                               const PagedBatch<Space::device>& batch, float scale) = 0;
  virtual void argmax(DeviceView<std::int32_t, 1> out, DeviceView<const float, 2> x) = 0;
};

/// How a GPU computes the attention of a prefill, that is of batches in which a sequence
/// has more than four queries.
enum class AttentionKernel {
  exact,  ///< in f32, whatever keys and values are stored as
  /// Where keys and values are stored in 16 bits and head_dim is 32, 64 or 128, on tensor
  /// cores: queries and weights are rounded to the stored type (f16 11 bits, bf16 8), sums
  /// are f32. Elsewhere as exact.
  flash,
};

/// This CPU, exact (f32 activations). What everything uses that names no device.
Device& cpu_device();

/// @param name        cpu, cuda or simt
/// @param activations how a CPU multiplies quantised weights
/// @param attention   how a GPU computes a prefill; a CPU is always exact
/// @throws UsageError for another name
/// @throws UnavailableError if this build or this machine has no such device
std::unique_ptr<Device> make_device(const std::string& name,
                                    Activations activations = Activations::f32,
                                    AttentionKernel attention = AttentionKernel::exact);

/// The names that make_device() takes in this build: "cpu|simt" or "cpu|cuda|simt".
const char* device_names();

/// @return the elements in host memory, valid until the next download
template <class T, int Rank>
HostView<const T, Rank> download(Device& device, DeviceView<T, Rank> v) {
  const std::byte* bytes = device.download(reinterpret_cast<const std::byte*>(v.data),
                                           std::size_t(v.size()) * sizeof(T));
  return {reinterpret_cast<const T*>(bytes), v.shape};
}

}  // namespace lab
