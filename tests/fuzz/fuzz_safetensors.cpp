// Any bytes, taken as a safetensors file and as the index of a sharded one: an Error or a
// result, never anything else. Tensors must lie inside the file.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "lab/core/error.hpp"
#include "lab/model/checkpoint.hpp"
#include "lab/model/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lab;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const Checkpoint checkpoint(parse_safetensors(bytes));
    for (const TensorInfo& t : checkpoint.tensors())
      if (t.data.data() < bytes.data() ||
          t.data.data() + t.data.size() > bytes.data() + bytes.size())
        std::abort();
  } catch (const Error&) {
  }
  try {
    static_cast<void>(parse_safetensors_index({reinterpret_cast<const char*>(data), size}));
  } catch (const Error&) {
  }
  return 0;
}
