// What every device promises: memory, copies, recorded work, and clear refusals.
#include <cmath>
#include <numeric>

#include "lab/core/error.hpp"
#include "lab/device/device.hpp"
#include "support/catch.hpp"

using namespace lab;

namespace {

template <class T>
std::vector<T> numbers(std::size_t n) {
  std::vector<T> v(n);
  std::iota(v.begin(), v.end(), T(1));
  return v;
}

}  // namespace

TEST_CASE("what is uploaded is downloaded, whatever its size") {
  const auto device = make_device(GENERATE("cpu", "simt"));
  // Larger than the staging memory of a GPU device, so that it goes in pieces.
  const std::size_t n = GENERATE(std::size_t{1}, 1000, 3'000'001);
  const auto values = numbers<std::int32_t>(n);
  const DeviceVector<std::int32_t> a(*device, values), b(*device, values);
  const auto back = download(*device, a.view());
  CHECK(std::vector<std::int32_t>(back.data, back.data + n) == values);
}

TEST_CASE("an array keeps its address until it must grow") {
  const auto device = make_device(GENERATE("cpu", "simt"));
  DeviceArray<float> array;
  const auto* first = array.fit<2>(*device, {3, 5}).data;
  CHECK(array.fit<2>(*device, {2, 5}).data == first);
  CHECK(array.fit<1>(*device, {15}).data == first);
  CHECK(array.fit<2>(*device, {4, 500}).shape == std::array<std::int64_t, 2>{4, 500});
}

TEST_CASE("recorded work is done once for each run, on what the memory holds then") {
  const auto device = make_device(GENERATE("cpu", "simt"));
  const std::vector<float> ones(6, 1.0f);
  const DeviceVector<float> one(*device, ones);
  DeviceArray<float> array;
  const auto sum = array.fit<2>(*device, {2, 3});
  device->upload(reinterpret_cast<std::byte*>(sum.data), ones.data(), 6 * sizeof(float));
  const auto work = device->record([&] {
    device->add(sum, sum, one.view().reshape<2>({2, 3}));
  });
  CHECK(download(*device, DeviceView<const float, 2>(sum)).data[5] ==
        1.0f);  // not done yet
  for (int i = 0; i < 3; ++i) work->run();
  CHECK(download(*device, DeviceView<const float, 2>(sum)).data[5] == 4.0f);
}

TEST_CASE("an error while recording ends the recording") {
  const auto device = make_device(GENERATE("cpu", "simt"));
  DeviceArray<float> a, b;
  const auto x = a.fit<2>(*device, {2, 3}), y = b.fit<2>(*device, {3, 2});
  try {
    device->record([&] { device->add(x, x, y); })->run();
    FAIL("the shapes disagree");
  } catch (const Error& e) {
    CHECK_THAT(e.what(), ContainsSubstring("add"));
  }
  const std::vector<float> ones(6, 1.0f);
  device->upload(reinterpret_cast<std::byte*>(x.data), ones.data(), 6 * sizeof(float));
  device->add(x, x, x);
  CHECK(download(*device, DeviceView<const float, 2>(x)).data[5] == 2.0f);
}

TEST_CASE("a device that is not there is refused with what to do") {
  CHECK_THROWS_WITH(make_device("gpu"), ContainsSubstring("give cpu, simt or cuda"));
  CHECK_THROWS_AS(make_device("gpu"), UsageError);
  try {
    const auto device = make_device("cuda");  // on a machine with a GPU
    CHECK(device->name() == "cuda");
  } catch (const UnavailableError& e) {
    CHECK_THAT(e.what(), ContainsSubstring("--device simt"));
  }
}
