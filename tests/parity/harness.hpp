/// @file
/// The table of parity tests: every operation of ops.def, run by its CPU reference and on
/// the GPU under test, and the results compared. A row is a function:
///
///   LAB_PARITY(add, "odd sizes") { ... REQUIRE(...) ... }
///
/// The program is built for each GPU: LAB_TEST_GPU is simt (emulated) or cuda. It exits
/// with 77, "skipped" to ctest, where there is no such GPU.
#pragma once

#include <string>
#include <vector>

#include "kernels/support.hpp"
#include "lab/kernels/gpu.hpp"

namespace lab::test {

/// The GPU under test.
namespace gpu = lab::LAB_TEST_GPU;

/// Whether every memory access is checked, which takes some thirty times as long: rows then
/// leave out their largest sizes.
#ifdef LAB_TEST_TRACED
inline constexpr bool kTraced = true;
#else
inline constexpr bool kTraced = false;
#endif

/// The stream that every test works on. It is not the default stream and does not wait for
/// it, so that an operation which ignores its stream argument is noticed on a real GPU.
Stream stream();

struct ParityRow {
  const char* op;    ///< as in ops.def
  const char* what;  ///< what this row is about
  void (*run)();
};
/// Every LAB_PARITY of the program.
std::vector<ParityRow>& parity_table();
struct ParityRegistration {
  explicit ParityRegistration(ParityRow row) { parity_table().push_back(row); }
};

#define LAB_PARITY_JOIN2(a, b) a##b
#define LAB_PARITY_JOIN(a, b) LAB_PARITY_JOIN2(a, b)
#define LAB_PARITY(op, what)                                                          \
  static void LAB_PARITY_JOIN(parity_row_, __LINE__)();                               \
  static const ::lab::test::ParityRegistration LAB_PARITY_JOIN(                       \
      registration_, __LINE__)({#op, what, &LAB_PARITY_JOIN(parity_row_, __LINE__)}); \
  static void LAB_PARITY_JOIN(parity_row_, __LINE__)()

/// Device memory. As an input it has exactly the bytes of its values, so that the traced
/// emulator sees any read outside; as an output it lies between two bands of a pattern that
/// is NaN in every format and that no kernel may touch.
template <class T>
class DeviceArray {
 public:
  /// An input. `skew` elements lie before it, which takes it off its alignment.
  explicit DeviceArray(const std::vector<T>& values, std::int64_t skew = 0)
      : DeviceArray(std::int64_t(values.size()), skew, 0) {
    write(values);
  }
  /// An output of n elements, unset.
  static DeviceArray output(std::int64_t n, std::int64_t skew = 0) {
    DeviceArray a(n, skew, kBandBytes);
    std::vector<std::uint16_t> pattern(std::size_t(a.all_bytes()) / 2 + 1, kPattern);
    gpu::copy_to_device(a.base_, pattern.data(), std::size_t(a.before()), stream());
    gpu::copy_to_device(a.base_ + a.before() + a.bytes(), pattern.data(), kBandBytes,
                        stream());
    gpu::synchronize(stream());
    return a;
  }
  /// An output that starts as `values`: what an operation works on in place.
  static DeviceArray output(const std::vector<T>& values, std::int64_t skew = 0) {
    DeviceArray a = output(std::int64_t(values.size()), skew);
    a.write(values);
    return a;
  }
  DeviceArray(DeviceArray&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        n_(other.n_),
        skew_(other.skew_),
        band_(other.band_) {}
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() {
    if (base_) gpu::release(base_, stream());
  }

  T* data() const { return reinterpret_cast<T*>(base_ + before()); }
  std::int64_t size() const { return n_; }
  template <std::size_t N>
  DeviceView<T, int(N)> view(const std::int64_t (&shape)[N]) const {
    DeviceView<T, int(N)> v{data(), {}};
    for (std::size_t i = 0; i < N; ++i) v.shape[i] = shape[i];
    return v;
  }
  void write(const std::vector<T>& values) {
    gpu::copy_to_device(data(), values.data(), std::size_t(bytes()), stream());
    gpu::synchronize(stream());
  }
  /// The elements, after all work on the stream.
  std::vector<T> host() const {
    std::vector<T> values(static_cast<std::size_t>(n_));
    gpu::copy_to_host(values.data(), data(), std::size_t(bytes()), stream());
    gpu::synchronize(stream());
    return values;
  }
  /// Whether an output's bands are as they were.
  bool intact() const {
    std::vector<std::byte> all(static_cast<std::size_t>(all_bytes()));
    const std::size_t end = std::size_t(before() + bytes());
    gpu::copy_to_host(all.data(), base_, std::size_t(before()), stream());
    gpu::copy_to_host(all.data() + end, base_ + end, std::size_t(band_), stream());
    gpu::synchronize(stream());
    const std::vector<std::uint16_t> pattern(all.size() / 2 + 1, kPattern);
    return std::memcmp(all.data(), pattern.data(), std::size_t(before())) == 0 &&
           std::memcmp(all.data() + end, pattern.data(), std::size_t(band_)) == 0;
  }

 private:
  static constexpr std::int64_t kBandBytes = 256;
  static constexpr std::uint16_t kPattern = 0xffa5;

  DeviceArray(std::int64_t n, std::int64_t skew, std::int64_t band)
      : n_(n), skew_(skew), band_(band) {
    base_ = gpu::allocate(std::size_t(all_bytes()), stream());
  }
  std::int64_t bytes() const { return n_ * std::int64_t(sizeof(T)); }
  std::int64_t before() const { return band_ + skew_ * std::int64_t(sizeof(T)); }
  std::int64_t all_bytes() const { return before() + bytes() + band_; }

  std::byte* base_ = nullptr;
  std::int64_t n_, skew_, band_;
};

/// mismatch() of whole vectors: empty if every |a -
/// b| <= absolute + relative * |b|.
inline std::string mismatch(const std::vector<float>& a, const std::vector<float>& b,
                            double absolute, double relative) {
  if (a.size() != b.size()) return fmt::format("{} elements, not {}", a.size(), b.size());
  return mismatch(a.data(), b.data(), std::int64_t(a.size()), absolute, relative);
}

/// An output of the operation is right, and nothing beside it was written.
#define LAB_REQUIRE_CLOSE(out, expected, absolute, relative)                \
  do {                                                                      \
    REQUIRE(::lab::test::mismatch((out).host(), expected, double(absolute), \
                                  double(relative)) == "");                 \
    REQUIRE((out).intact());                                                \
  } while (false)

}  // namespace lab::test
