// Any bytes, taken as a GGUF model: an Error or a model, never anything else.
#include <cstdint>
#include <span>

#include "lab/core/error.hpp"
#include "lab/model/gguf.hpp"
#include "lab/model/gguf_model.hpp"
#include "lab/model/weights.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lab;
  try {
    const GgufFile file = parse_gguf(std::as_bytes(std::span(data, size)));
    const Checkpoint checkpoint(file.tensors);
    // Each step on its own: a file that is no model may still have a vocabulary.
    try {
      static_cast<void>(vocab_from_gguf(file.metadata));
    } catch (const Error&) {
    }
    const Config config = config_from_gguf(file.metadata, checkpoint);
    static_cast<void>(bind_weights(checkpoint, config, WeightNames::gguf));
  } catch (const Error&) {
  }
  return 0;
}
